"""The paper's run on a cluster, simulated: workers that fail, walls, blocks and files (notebook 17)."""
