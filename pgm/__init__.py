"""The ground floor: partition and masked transformers, sampling, objectives and training, free of images and text."""
