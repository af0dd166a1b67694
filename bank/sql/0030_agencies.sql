-- 0030: whose an allocation and a project are: the agency that granted or deposited it, or made it.

CREATE FUNCTION agency_named (client text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substring (client FROM '^nui://[^/]+/agency/([^/]+)$') $$;
CREATE FUNCTION giver_of (op bigint, award bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN award IS NULL THEN (SELECT bank.agency_named (o.client) FROM bank.op o WHERE o.id = op)
        ELSE (SELECT f.name FROM bank.award g JOIN bank.funder f ON f.id = g.funder_id WHERE g.id = award) END $$;
-- ",nsf,dfg,": of the project and of those above it.
CREATE FUNCTION project_makers (project bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT ',' || coalesce (string_agg (bank.agency_named (o.client), ',') || ',', '') FROM bank.project p
        JOIN bank.op o ON o.id = p.op_id WHERE p.id = ANY (string_to_array (
        concat_ws (',', project, bank.project_ancestors (project)), ',')::bigint[]) $$;
