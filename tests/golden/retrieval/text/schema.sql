-- Readings, a row a minute.
CREATE TABLE IF NOT EXISTS reading (
  at timestamptz PRIMARY KEY,
  level_mm integer NOT NULL,
  sigma_mm real NOT NULL CHECK (sigma_mm >= 0)
);

CREATE UNIQUE INDEX reading_level ON reading (level_mm, at);

CREATE OR REPLACE FUNCTION mean_level(since timestamptz)
RETURNS real AS $$
  SELECT avg(level_mm) FROM reading WHERE at >= since;
$$ LANGUAGE sql;

INSERT INTO reading VALUES ('2026-03-01', 3120, 2.1);
