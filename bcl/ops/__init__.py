"""Losses, updates, draws, projections, masks: the plain form and the choice of the fused one."""
