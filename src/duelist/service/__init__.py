"""Ask and tell over HTTP, and the page people vote on. Everything acknowledged is in the journal first."""
