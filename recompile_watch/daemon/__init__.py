"""The loop: reads, decides, remembers and tells, for months. The only place with the clock, signals and a catch-all."""
