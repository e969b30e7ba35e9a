"""What a comparison says about utility: links, likelihoods, and maximum likelihood."""
