-- What a schema of Muniment consists of, one row each: its name and all that decides what it does. Read by muniment-verify,
-- which holds it against definitions.txt, and by scripts/dump_schema.py, which writes that file. The search_path is
-- pg_catalog, public, pg_temp. Partitions of event are looked at by their bounds; who may do what is no part of it.
WITH ours AS (
  SELECT c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname IN ('public', 'report') AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname !~ '^event_[0-9]+(_[0-9]+)?$'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
)
SELECT name, definition FROM (
  SELECT format('table %s.%s', nspname, relname) AS name, concat_ws(' ', relkind, relrowsecurity) AS definition FROM ours WHERE relkind IN ('r', 'p')
  UNION ALL
  SELECT format('view %s.%s', nspname, relname), concat_ws(' ', relkind, reloptions::text, pg_get_viewdef(oid)) FROM ours WHERE relkind IN ('v', 'm')
  UNION ALL
  SELECT format('column %s.%s.%s', o.nspname, o.relname, a.attname),
         concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
    FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT format('constraint %s.%s.%s', o.nspname, o.relname, k.conname), concat_ws(' ', k.convalidated, pg_get_constraintdef(k.oid))
    FROM ours o JOIN pg_constraint k ON k.conrelid = o.oid WHERE k.contype <> 't' AND k.conparentid = 0
  UNION ALL
  SELECT format('trigger %s.%s.%s', o.nspname, o.relname, t.tgname), concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
    FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid WHERE NOT t.tgisinternal AND t.tgparentid = 0
  UNION ALL
  SELECT format('rule %s.%s.%s', o.nspname, o.relname, r.rulename), concat_ws(' ', r.ev_enabled, pg_get_ruledef(r.oid))
    FROM ours o JOIN pg_rewrite r ON r.ev_class = o.oid WHERE r.rulename <> '_RETURN'
  UNION ALL
  SELECT format('policy %s.%s.%s', o.nspname, o.relname, p.polname),
         concat_ws(' ', p.polpermissive, p.polcmd, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
    FROM ours o JOIN pg_policy p ON p.polrelid = o.oid
  UNION ALL
  SELECT format('function %s.%s(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
         concat_ws(' ', l.lanname, p.prokind, p.prosecdef, p.provolatile, p.proisstrict, p.proconfig::text, p.probin,
                   pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosrc, pg_get_function_sqlbody(p.oid))
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
   WHERE n.nspname IN ('public', 'report')
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
) AS what ORDER BY name COLLATE "C"
