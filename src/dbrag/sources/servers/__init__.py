"""Database servers behind SQLAlchemy: one source class, one engine module per kind of server."""
