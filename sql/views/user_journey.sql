-- The story of a user in one select: who it is, what they did (oldest first), the surroundings, then what each stage made of it.
-- grain: one row per ds, scenario, method, user and step
-- ds: Business date of the night
-- scenario: Where the result is shown
-- method: Recipe
-- user_id: The user
-- step: Order of the story, from 1 for each night, method and user
-- stage: attribute, line, signal, persona, tag, item (the 3 nearest of each tag), explanation, tag_verdict, explanation_verdict
-- place: line_id, persona_index or rank; for a verdict the rank of what was judged; null for attributes and signals
-- happened_at: Newest event of the line (UTC); null for every other stage
-- what: The attribute's name, the line, the signal, the persona's name, the tag, the item's title, the explanation's text (null where it
--   failed), or what was judged
-- detail: The attribute's value, the persona's focus, the tag's reason, the item's tag, the explained item's title, or the judge; else null
-- score: What a tag or an item was ranked by; else null
-- label: A verdict's S, A or B, null where judging failed; else null
-- line_ids: The context lines that a persona rests on; else null
-- tag_id: The tag that the step is about, where it is about one
-- item_id: The item that the step is about, where it is about one
-- explanation_id: The explanation that the step is about, where it is about one
WITH told_attributes AS (
    SELECT
        ds,
        scenario,
        method,
        user_id,
        explode(attributes) AS told
    FROM user_contexts
),

told_lines AS (
    SELECT
        ds,
        scenario,
        method,
        user_id,
        explode(lines) AS told
    FROM user_contexts
),

told_signals AS (
    SELECT
        ds,
        scenario,
        method,
        user_id,
        explode(signals) AS told
    FROM user_contexts
),

named_items AS (
    SELECT DISTINCT
        ds,
        item_id
    FROM candidate_items
    WHERE rank <= 3
    UNION
    SELECT DISTINCT
        ds,
        item_id
    FROM explanation_assignments
),

versions AS (
    SELECT
        n.ds,
        n.item_id,
        i.title,
        row_number() OVER (PARTITION BY n.ds, n.item_id ORDER BY i.valid_from_ds DESC) AS version_index
    FROM named_items AS n
    INNER JOIN items AS i ON n.item_id = i.item_id AND n.ds >= i.valid_from_ds
),

titles AS (
    SELECT
        ds,
        item_id,
        title
    FROM versions
    WHERE version_index = 1
),

steps AS ( -- the first of them says the types
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        4 AS stage_index,
        'persona' AS stage,
        t.persona_index AS place,
        t.persona_index AS first_key,
        0 AS second_key,
        cast(NULL AS timestamp) AS happened_at,
        t.name AS what,
        t.focus AS detail,
        cast(NULL AS double) AS score,
        cast(NULL AS string) AS label,
        t.line_ids,
        cast(NULL AS string) AS tag_id,
        cast(NULL AS string) AS item_id,
        cast(NULL AS string) AS explanation_id
    FROM intent_plans AS t
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        1 AS stage_index,
        'attribute' AS stage,
        NULL AS place,
        0 AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        t.told.name AS what,
        t.told.value AS detail,
        NULL AS score,
        NULL AS label,
        NULL AS line_ids,
        NULL AS tag_id,
        NULL AS item_id,
        NULL AS explanation_id
    FROM told_attributes AS t
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        2 AS stage_index,
        'line' AS stage,
        t.told.line_id AS place,
        -t.told.line_id AS first_key,
        0 AS second_key,
        t.told.newest_at AS happened_at,
        t.told.text AS what,
        NULL AS detail,
        NULL AS score,
        NULL AS label,
        NULL AS line_ids,
        NULL AS tag_id,
        NULL AS item_id,
        NULL AS explanation_id
    FROM told_lines AS t
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        3 AS stage_index,
        'signal' AS stage,
        NULL AS place,
        0 AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        t.told AS what,
        NULL AS detail,
        NULL AS score,
        NULL AS label,
        NULL AS line_ids,
        NULL AS tag_id,
        NULL AS item_id,
        NULL AS explanation_id
    FROM told_signals AS t
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        5 AS stage_index,
        'tag' AS stage,
        t.rank AS place,
        t.rank AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        t.tag AS what,
        t.reason AS detail,
        t.score,
        NULL AS label,
        NULL AS line_ids,
        t.tag_id,
        NULL AS item_id,
        NULL AS explanation_id
    FROM intent_tags_v1 AS t
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        6 AS stage_index,
        'item' AS stage,
        t.rank AS place,
        g.rank AS first_key,
        t.rank AS second_key,
        NULL AS happened_at,
        i.title AS what,
        g.tag AS detail,
        t.score,
        NULL AS label,
        NULL AS line_ids,
        t.tag_id,
        t.item_id,
        NULL AS explanation_id
    FROM candidate_items AS t
    INNER JOIN intent_tags_v1 AS g
        ON t.ds = g.ds AND t.scenario = g.scenario AND t.method = g.method AND t.user_id = g.user_id AND t.tag_id = g.tag_id
    LEFT JOIN titles AS i ON t.ds = i.ds AND t.item_id = i.item_id
    WHERE t.rank <= 3
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        7 AS stage_index,
        'explanation' AS stage,
        t.rank AS place,
        t.rank AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        e.text AS what,
        i.title AS detail,
        NULL AS score,
        NULL AS label,
        NULL AS line_ids,
        t.tag_id,
        t.item_id,
        t.explanation_id
    FROM explanation_assignments AS t
    LEFT JOIN explanations_v1 AS e
        ON t.ds = e.ds AND t.scenario = e.scenario AND t.method = e.method AND t.explanation_id = e.explanation_id
    LEFT JOIN titles AS i ON t.ds = i.ds AND t.item_id = i.item_id
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        8 AS stage_index,
        'tag_verdict' AS stage,
        g.rank AS place,
        g.rank AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        g.tag AS what,
        t.judge_method AS detail,
        NULL AS score,
        t.label,
        NULL AS line_ids,
        t.tag_id,
        NULL AS item_id,
        NULL AS explanation_id
    FROM tag_verdicts AS t
    INNER JOIN intent_tags_v1 AS g
        ON t.ds = g.ds AND t.scenario = g.scenario AND t.method = g.method AND t.user_id = g.user_id AND t.tag_id = g.tag_id
    UNION ALL
    SELECT
        t.ds,
        t.scenario,
        t.method,
        t.user_id,
        9 AS stage_index,
        'explanation_verdict' AS stage,
        t.rank AS place,
        t.rank AS first_key,
        0 AS second_key,
        NULL AS happened_at,
        e.text AS what,
        v.judge_method AS detail,
        NULL AS score,
        v.label,
        NULL AS line_ids,
        t.tag_id,
        t.item_id,
        t.explanation_id
    FROM explanation_assignments AS t
    INNER JOIN explanation_verdicts AS v
        ON t.ds = v.ds AND t.scenario = v.scenario AND t.method = v.method AND t.explanation_id = v.explanation_id
    LEFT JOIN explanations_v1 AS e
        ON t.ds = e.ds AND t.scenario = e.scenario AND t.method = e.method AND t.explanation_id = e.explanation_id
)

SELECT
    s.ds,
    s.scenario,
    s.method,
    s.user_id,
    row_number() OVER (
        PARTITION BY s.ds, s.scenario, s.method, s.user_id
        ORDER BY s.stage_index, s.first_key, s.second_key, s.what, s.detail
    ) AS step,
    s.stage,
    s.place,
    s.happened_at,
    s.what,
    s.detail,
    s.score,
    s.label,
    s.line_ids,
    s.tag_id,
    s.item_id,
    s.explanation_id
FROM steps AS s
