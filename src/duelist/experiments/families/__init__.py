"""Problem families: varied problems on which every policy is compared."""
