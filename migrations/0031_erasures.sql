-- Finds the event that announced an erasure: readers believe that an event was erased only if one did. An event.redacted
-- whose body is archived has no number in the index.

CREATE INDEX event_redacted ON event (log_no, ((body->>'seq')::bigint)) WHERE type = 'event.redacted';
