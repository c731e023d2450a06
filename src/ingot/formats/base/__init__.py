"""What the formats are built on: options, indexes, media files, contents and sinks."""
