"""What the tests share: the schema oracle, transcripts, generated mutations and the bad-bytes corpus."""
