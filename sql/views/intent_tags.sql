-- What each user may want next: the ranked tags of every visible night, who proposed them and what the judges say.
-- grain: one row per ds, scenario, method, user and tag
-- columns of intent_tags_v1, and
-- persona: The point of view that proposed it, the planner's first where several did; null where that plan is not there
-- persona_count: How many points of view proposed it
-- candidate_count: How many items were found for it
-- panel_label: S superior, A average, B bad, by the panel of judges; null where it was not judged or judging failed
-- one_shot_label: The same by the one-shot judge
-- user_status: computed in this night, or carried from an older one
-- computed_ds: Business date of the night that computed it
WITH labels AS (
    SELECT
        ds,
        scenario,
        method,
        user_id,
        tag_id,
        max(CASE WHEN judge_method = 'panel' THEN label END) AS panel_label,
        max(CASE WHEN judge_method = 'one_shot' THEN label END) AS one_shot_label
    FROM tag_verdicts
    GROUP BY ds, scenario, method, user_id, tag_id
),

candidates AS (
    SELECT
        ds,
        scenario,
        method,
        user_id,
        tag_id,
        count(*) AS candidate_count
    FROM candidate_items
    GROUP BY ds, scenario, method, user_id, tag_id
)

SELECT
    t.ds,
    t.publish_id,
    t.scenario,
    t.method,
    t.user_id,
    t.user_bucket,
    t.tag_id,
    t.intent_tag_id,
    t.locale,
    t.tag,
    t.rank,
    t.score,
    t.persona_indexes,
    t.pool_index,
    t.reason,
    t.call_id,
    p.name AS persona,
    size(t.persona_indexes) AS persona_count,
    coalesce(c.candidate_count, 0) AS candidate_count,
    l.panel_label,
    l.one_shot_label,
    n.status AS user_status,
    n.computed_ds
FROM intent_tags_v1 AS t
INNER JOIN night_users AS n
    ON t.ds = n.ds AND t.scenario = n.scenario AND t.method = n.method AND t.user_id = n.user_id
LEFT JOIN intent_plans AS p
    ON
        t.ds = p.ds AND t.scenario = p.scenario AND t.method = p.method AND t.user_id = p.user_id
        AND p.persona_index = array_min(t.persona_indexes)
LEFT JOIN candidates AS c
    ON t.ds = c.ds AND t.scenario = c.scenario AND t.method = c.method AND t.user_id = c.user_id AND t.tag_id = c.tag_id
LEFT JOIN labels AS l
    ON t.ds = l.ds AND t.scenario = l.scenario AND t.method = l.method AND t.user_id = l.user_id AND t.tag_id = l.tag_id
