-- Why an item fits an interest in a situation: every text that a visible night shows, how many users see it and what the judges say.
-- grain: one row per ds, scenario, method and explanation
-- columns of explanations_v1, and
-- text_chars: Characters of text
-- user_count: Users of the night who are shown it
-- item_count: Items that it is shown for; items of equal text share it
-- is_shared: Whether some of them were given a text that an older generation had written
-- panel_label: S superior, A average, B bad, by the panel of judges; null where it was not judged or judging failed
-- one_shot_label: The same by the one-shot judge
WITH labels AS (
    SELECT
        ds,
        scenario,
        method,
        explanation_id,
        max(CASE WHEN judge_method = 'panel' THEN label END) AS panel_label,
        max(CASE WHEN judge_method = 'one_shot' THEN label END) AS one_shot_label
    FROM explanation_verdicts
    GROUP BY ds, scenario, method, explanation_id
),

uses AS (
    SELECT
        ds,
        scenario,
        method,
        explanation_id,
        count(DISTINCT user_id) AS user_count,
        count(DISTINCT item_id) AS item_count,
        max(CASE WHEN status = 'shared' THEN 1 ELSE 0 END) = 1 AS is_shared
    FROM explanation_assignments
    WHERE status IN ('written', 'shared')
    GROUP BY ds, scenario, method, explanation_id
)

SELECT
    e.ds,
    e.publish_id,
    e.scenario,
    e.method,
    e.explanation_id,
    e.tag_id,
    e.tag,
    e.text_hash,
    e.item_text,
    e.situation_id,
    e.situation,
    e.locale,
    e.style,
    e.style_call_id,
    e.text,
    e.call_id,
    e.writer_hash,
    length(e.text) AS text_chars,
    u.user_count,
    u.item_count,
    u.is_shared,
    l.panel_label,
    l.one_shot_label
FROM explanations_v1 AS e
INNER JOIN uses AS u
    ON e.ds = u.ds AND e.scenario = u.scenario AND e.method = u.method AND e.explanation_id = u.explanation_id
LEFT JOIN labels AS l
    ON e.ds = l.ds AND e.scenario = l.scenario AND e.method = l.method AND e.explanation_id = l.explanation_id
