"""Measuring an image model: distances to real images, recognisable classes, copies, speed."""
