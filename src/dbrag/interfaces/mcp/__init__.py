"""``dbrag mcp``: tools and resources for agents over :class:`dbrag.Database`, no logic of its own.

transports  standard input and output, streamable HTTP behind the rules of ``http.access``; signals
server      the tools, the resources and their wording, for the official SDK
service     what the tools do: calls of the database in bounded threads, kept results
catalog     tables, one table, values, from the index
pages       so many rows and characters at once, and how the rest is reached
shapes      structured content and its schemas; text: the same for people
failures    errors as agents read them, and the log

All of it imports without the extra ``mcp``; :func:`failures.server_class` says what is missing.
"""
