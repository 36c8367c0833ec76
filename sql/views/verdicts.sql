-- What every judge said about every tag and explanation, one dimension a row. Count labels with count(DISTINCT ...) or where
-- dimension_index is 1, because a label stands once for each of its dimensions.
-- grain: one row per ds, scenario, method, judged thing, judge and dimension; one without a dimension where the judge gave no level
-- ds: Business date of the night
-- scenario: Where the result is shown
-- method: Recipe of the writer
-- judged: tag or explanation
-- judged_id: tag_id or explanation_id
-- user_id: The user whose tag was judged; null for an explanation, which is judged once for all who see it
-- judged_text: The tag, or the explanation's text
-- judge_method: panel (one call a dimension) or one_shot (one call in all)
-- judge_model: The model that judged
-- is_self_judged: Whether judge and writer are the same model
-- verdict_status: judged, by_rule (bad without a call, such as an empty text), failed (no grade)
-- label: S superior, A average, B bad; null where verdict_status is failed
-- labeled_by: rule or model
-- dimension_index: Place of the dimension in alphabetical order, from 1
-- dimension: What was asked for; null where the judge gave no level at all
-- level: negative, neutral, positive; null where it failed
-- level_status: ok, or why there is no level
-- score: What the level was cut from; null where the judge named it
-- level_reason: Why, in the judge's words; null where it gave none
-- call_id: The judge's call; null without one
WITH judged_things AS (
    SELECT
        v.ds,
        v.scenario,
        v.method,
        'tag' AS judged,
        v.tag_id AS judged_id,
        v.user_id,
        t.tag AS judged_text,
        v.judge_method,
        v.judge_model,
        v.is_self_judged,
        v.status AS verdict_status,
        v.label,
        v.labeled_by,
        v.levels
    FROM tag_verdicts AS v
    LEFT JOIN intent_tags_v1 AS t
        ON v.ds = t.ds AND v.scenario = t.scenario AND v.method = t.method AND v.user_id = t.user_id AND v.tag_id = t.tag_id
    UNION ALL
    SELECT
        v.ds,
        v.scenario,
        v.method,
        'explanation' AS judged,
        v.explanation_id AS judged_id,
        NULL AS user_id,
        e.text AS judged_text,
        v.judge_method,
        v.judge_model,
        v.is_self_judged,
        v.status AS verdict_status,
        v.label,
        v.labeled_by,
        v.levels
    FROM explanation_verdicts AS v
    LEFT JOIN explanations_v1 AS e
        ON v.ds = e.ds AND v.scenario = e.scenario AND v.method = e.method AND v.explanation_id = e.explanation_id
),

named AS (
    SELECT
        ds,
        scenario,
        method,
        judged,
        judged_id,
        user_id,
        judged_text,
        judge_method,
        judge_model,
        is_self_judged,
        verdict_status,
        label,
        labeled_by,
        explode(levels) AS told
    FROM judged_things
),

flat AS (
    SELECT
        n.ds,
        n.scenario,
        n.method,
        n.judged,
        n.judged_id,
        n.user_id,
        n.judged_text,
        n.judge_method,
        n.judge_model,
        n.is_self_judged,
        n.verdict_status,
        n.label,
        n.labeled_by,
        n.told.dimension,
        n.told.level,
        n.told.status AS level_status,
        n.told.score,
        n.told.reason AS level_reason,
        n.told.call_id
    FROM named AS n
    UNION ALL
    SELECT
        j.ds,
        j.scenario,
        j.method,
        j.judged,
        j.judged_id,
        j.user_id,
        j.judged_text,
        j.judge_method,
        j.judge_model,
        j.is_self_judged,
        j.verdict_status,
        j.label,
        j.labeled_by,
        NULL AS dimension,
        NULL AS level,
        NULL AS level_status,
        NULL AS score,
        NULL AS level_reason,
        NULL AS call_id
    FROM judged_things AS j
    WHERE size(j.levels) = 0
)

SELECT
    f.ds,
    f.scenario,
    f.method,
    f.judged,
    f.judged_id,
    f.user_id,
    f.judged_text,
    f.judge_method,
    f.judge_model,
    f.is_self_judged,
    f.verdict_status,
    f.label,
    f.labeled_by,
    row_number() OVER (
        PARTITION BY f.ds, f.scenario, f.method, f.judged, f.judged_id, f.user_id, f.judge_method
        ORDER BY f.dimension
    ) AS dimension_index,
    f.dimension,
    f.level,
    f.level_status,
    f.score,
    f.level_reason,
    f.call_id
FROM flat AS f
