"""The parts of `muniment.checkpointer`: values.py packs them, threads.py knows which checkpoints a thread has, store.py writes and reads
checkpoints and pending writes."""
