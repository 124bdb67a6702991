-- The table feedback is made of events, and rebuilding it must not need the archive: their bodies stay as those of documents do.
CREATE OR REPLACE FUNCTION event_body_stays(type text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(type, '.', 1) = ANY ('{access,artifact,claim,document,event,evidence,feedback,key,log,manifest,pointer,run,snapshot,source,task}')
$$;
