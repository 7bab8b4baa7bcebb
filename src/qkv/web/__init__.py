"""The explorer: thin routes over the library, and a page that shows what they say."""
