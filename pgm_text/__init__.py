"""The text product: PGM, MDLM and RMDM over the ground floor `pgm`, their corpora, tokenizers and checkpoints."""
