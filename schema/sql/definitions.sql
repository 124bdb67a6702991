-- What a schema of Muniment consists of, one row each: its name and all that decides what it does. Read by muniment-verify,
-- which holds it against definitions.txt, and by scripts/dump_schema.py, which writes that file. The search_path is
-- pg_catalog, public, pg_temp. A partition of event has a row for each thing in which it is not as event is, so in order it has
-- none (its bounds are looked at elsewhere). Who may do what is no part of it, nor are indexes that no constraint needs.
WITH ours AS (
  SELECT c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relpersistence, c.relhastriggers, c.relhasrules, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname IN ('public', 'report') AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname !~ '^event_[0-9]+(_[0-9]+)?$'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
), parts AS (
  SELECT c.oid, format('partition %s.%s', n.nspname, c.relname) AS name, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.relhastriggers
  FROM pg_partition_tree('public.event') t JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE t.level > 0
)
SELECT name, definition FROM (
  SELECT format('table %s.%s', nspname, relname) AS name, concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, relpersistence,
           CASE WHEN NOT relhastriggers AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = ours.oid) THEN 'triggers switched off' END) AS definition FROM ours WHERE relkind IN ('r', 'p')
  UNION ALL
  SELECT format('view %s.%s', nspname, relname), concat_ws(' ', relkind, reloptions::text, pg_get_viewdef(oid)) FROM ours WHERE relkind IN ('v', 'm')
  UNION ALL
  SELECT format('view %s.%s', o.nspname, o.relname), 'it is switched off' FROM ours o LEFT JOIN pg_rewrite r ON r.ev_class = o.oid AND r.rulename = '_RETURN'
   WHERE o.relkind = 'v' AND (r.ev_enabled <> 'O' OR r.ev_enabled IS NULL OR NOT o.relhasrules)
  UNION ALL
  SELECT format('column %s.%s.%s', o.nspname, o.relname, a.attname),
         concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity, pg_get_expr(d.adbin, d.adrelid),
                   (SELECT 'COLLATE ' || c.collname FROM pg_collation c JOIN pg_type t ON t.oid = a.atttypid WHERE c.oid = a.attcollation AND c.oid <> t.typcollation))
    FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT format('constraint %s.%s.%s', o.nspname, o.relname, k.conname), concat_ws(' ', k.convalidated, pg_get_constraintdef(k.oid),
                   (SELECT 'its index is switched off' FROM pg_index i WHERE i.indexrelid = k.conindid AND k.contype IN ('p', 'u')
                     AND NOT (i.indisunique AND i.indisvalid AND i.indisready AND i.indislive)))
    FROM ours o JOIN pg_constraint k ON k.conrelid = o.oid WHERE k.contype <> 't' AND k.conparentid = 0
  UNION ALL
  SELECT format('trigger %s.%s.%s', o.nspname, o.relname, t.tgname), concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
    FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid WHERE (NOT t.tgisinternal AND t.tgparentid = 0) OR t.tgenabled <> 'O'
  UNION ALL
  SELECT format('rule %s.%s.%s', o.nspname, o.relname, r.rulename), concat_ws(' ', r.ev_enabled, pg_get_ruledef(r.oid))
    FROM ours o JOIN pg_rewrite r ON r.ev_class = o.oid WHERE r.rulename <> '_RETURN'
  UNION ALL
  SELECT format('policy %s.%s.%s', o.nspname, o.relname, p.polname),
         concat_ws(' ', p.polpermissive, p.polcmd, (SELECT string_agg(coalesce(replace(r.rolname, regexp_replace(muniment_role('owner'), 'owner$', ''), ''), 'PUBLIC'), ',' ORDER BY r.rolname) FROM unnest(p.polroles) AS one (oid) LEFT JOIN pg_roles r ON r.oid = one.oid), pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
    FROM ours o JOIN pg_policy p ON p.polrelid = o.oid
  UNION ALL
  SELECT format('function %s.%s(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
         concat_ws(' ', l.lanname, p.prokind, p.prosecdef, p.provolatile, p.proisstrict, p.proconfig::text, p.probin,
                   pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosrc, pg_get_function_sqlbody(p.oid))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
   WHERE n.nspname IN ('public', 'report')
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  UNION ALL
  SELECT name, 'it is not logged: a crash empties it' FROM parts WHERE relpersistence <> 'p'
  UNION ALL
  SELECT name, 'triggers switched off' FROM parts WHERE NOT relhastriggers
  UNION ALL
  SELECT name, 'an index that no longer keeps it unique' FROM parts p JOIN pg_constraint k ON k.conrelid = p.oid AND k.contype IN ('p', 'u')
    JOIN pg_index i ON i.indexrelid = k.conindid WHERE NOT (i.indisunique AND i.indisvalid AND i.indisready AND i.indislive)
  UNION ALL
  SELECT name, 'row security of its own' FROM parts WHERE relrowsecurity OR relforcerowsecurity
  UNION ALL
  SELECT name, concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
    FROM parts p JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN pg_attribute e ON e.attrelid = 'public.event'::regclass AND e.attname = a.attname
    LEFT JOIN pg_attrdef f ON f.adrelid = e.attrelid AND f.adnum = e.attnum
   WHERE (a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
         IS DISTINCT FROM (e.atttypid, e.atttypmod, e.attnotnull, e.attgenerated, e.attidentity, pg_get_expr(f.adbin, f.adrelid))
  UNION ALL
  -- Its bounds are a constraint of its own.
  SELECT name, concat_ws(' ', 'constraint', k.conname, pg_get_constraintdef(k.oid)) FROM parts p JOIN pg_constraint k ON k.conrelid = p.oid
   WHERE k.contype NOT IN ('t', 'n') AND k.conparentid = 0 AND k.coninhcount = 0
     AND NOT (k.contype = 'c' AND pg_get_constraintdef(k.oid) ~ '^CHECK \(([][() 0-9<>=:'']|log_no|seq|bigint|smallint|AND)+\)$')
  UNION ALL
  -- Row triggers are clones of those of event; one of TRUNCATE it has to have itself, and has the same.
  SELECT name, concat_ws(' ', 'trigger', t.tgenabled, pg_get_triggerdef(t.oid)) FROM parts p JOIN pg_trigger t ON t.tgrelid = p.oid
    LEFT JOIN pg_trigger e ON e.tgrelid = 'public.event'::regclass AND e.tgname = t.tgname
   WHERE t.tgenabled <> 'O' OR (t.tgparentid = 0 AND (t.tgfoid, t.tgtype, t.tgqual::text, t.tgnargs) IS DISTINCT FROM (e.tgfoid, e.tgtype, e.tgqual::text, e.tgnargs))
  UNION ALL
  SELECT name, concat_ws(' ', 'no trigger', e.tgname) FROM parts p JOIN pg_trigger e ON e.tgrelid = 'public.event'::regclass AND NOT e.tgisinternal
   WHERE NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = p.oid AND t.tgname = e.tgname)
  UNION ALL
  SELECT name, 'rule ' || pg_get_ruledef(r.oid) FROM parts p JOIN pg_rewrite r ON r.ev_class = p.oid
  UNION ALL
  SELECT name, 'policy ' || y.polname FROM parts p JOIN pg_policy y ON y.polrelid = p.oid
  UNION ALL
  -- Whoever logs in with it has no trigger of these tables.
  SELECT format('setting of %s', coalesce('role ' || pg_get_userbyid(nullif(s.setrole, 0)), 'the database')), one.setting
    FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) AS one (setting)
   WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) AND one.setting ~* '^session_replication_role='
) AS what ORDER BY name COLLATE "C"
