"""Facts about people: types and loaders, the shipped table, biographies and questions by templates."""
