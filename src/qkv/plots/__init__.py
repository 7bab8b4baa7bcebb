"""The pictures, one module a floor, each picture with its one message as the title."""
