"""Export: a session as a document for people, as a page, Markdown or text, with secrets and home folders left out."""
