-- The methods of a night side by side: every figure of night_summary that compares, one a row, beside the same figure of v1.
-- grain: one row per ds, scenario, metric and method
-- ds: Business date of the night
-- scenario: Where the result is shown
-- metric_index: Order in which the metrics read best, from 1
-- metric: What is told: counts as in night_summary; *_ratio of those judged; *_per_user of the users with results; tokens per computed user
-- method: Recipe
-- value: The figure; null where it cannot be told, such as a ratio over nothing
-- v1_value: The same of method v1 in the same night; null where that night has no v1
-- ratio_to_v1: value divided by v1_value; null where either is missing or v1_value is 0
WITH bases AS (
    SELECT
        *,
        nullif(cast(computed_user_count + carried_user_count AS double), 0) AS served_users,
        nullif(cast(computed_user_count AS double), 0) AS computed_users,
        nullif(cast(tag_panel_s_count + tag_panel_a_count + tag_panel_b_count AS double), 0) AS tag_panel_judged,
        nullif(cast(tag_one_shot_s_count + tag_one_shot_a_count + tag_one_shot_b_count AS double), 0) AS tag_one_shot_judged,
        nullif(
            cast(explanation_panel_s_count + explanation_panel_a_count + explanation_panel_b_count AS double), 0
        ) AS explanation_panel_judged,
        nullif(
            cast(explanation_one_shot_s_count + explanation_one_shot_a_count + explanation_one_shot_b_count AS double), 0
        ) AS explanation_one_shot_judged
    FROM night_summary
),

metrics AS (
    SELECT
        n.ds,
        n.scenario,
        m.metric_index,
        m.metric,
        n.method,
        cast(CASE m.metric
            WHEN 'users' THEN n.user_count
            WHEN 'failed_users' THEN n.failed_user_count
            WHEN 'tags' THEN n.tag_count
            WHEN 'distinct_tags' THEN n.distinct_tag_count
            WHEN 'tags_per_user' THEN n.tag_count / n.served_users
            WHEN 'candidates' THEN n.candidate_count
            WHEN 'explained_items' THEN n.explained_item_count
            WHEN 'explanations' THEN n.explanation_count
            WHEN 'tag_panel_judged' THEN coalesce(n.tag_panel_judged, 0)
            WHEN 'tag_panel_s_ratio' THEN n.tag_panel_s_count / n.tag_panel_judged
            WHEN 'tag_panel_a_ratio' THEN n.tag_panel_a_count / n.tag_panel_judged
            WHEN 'tag_panel_b_ratio' THEN n.tag_panel_b_count / n.tag_panel_judged
            WHEN 'tag_panel_failed' THEN n.tag_panel_failed_count
            WHEN 'tag_one_shot_judged' THEN coalesce(n.tag_one_shot_judged, 0)
            WHEN 'tag_one_shot_s_ratio' THEN n.tag_one_shot_s_count / n.tag_one_shot_judged
            WHEN 'tag_one_shot_a_ratio' THEN n.tag_one_shot_a_count / n.tag_one_shot_judged
            WHEN 'tag_one_shot_b_ratio' THEN n.tag_one_shot_b_count / n.tag_one_shot_judged
            WHEN 'tag_one_shot_failed' THEN n.tag_one_shot_failed_count
            WHEN 'explanation_panel_judged' THEN coalesce(n.explanation_panel_judged, 0)
            WHEN 'explanation_panel_s_ratio' THEN n.explanation_panel_s_count / n.explanation_panel_judged
            WHEN 'explanation_panel_a_ratio' THEN n.explanation_panel_a_count / n.explanation_panel_judged
            WHEN 'explanation_panel_b_ratio' THEN n.explanation_panel_b_count / n.explanation_panel_judged
            WHEN 'explanation_panel_failed' THEN n.explanation_panel_failed_count
            WHEN 'explanation_one_shot_judged' THEN coalesce(n.explanation_one_shot_judged, 0)
            WHEN 'explanation_one_shot_s_ratio' THEN n.explanation_one_shot_s_count / n.explanation_one_shot_judged
            WHEN 'explanation_one_shot_a_ratio' THEN n.explanation_one_shot_a_count / n.explanation_one_shot_judged
            WHEN 'explanation_one_shot_b_ratio' THEN n.explanation_one_shot_b_count / n.explanation_one_shot_judged
            WHEN 'explanation_one_shot_failed' THEN n.explanation_one_shot_failed_count
            WHEN 'quarantined' THEN n.quarantined_count
            WHEN 'calls' THEN n.call_count
            WHEN 'prompt_tokens' THEN n.prompt_tokens
            WHEN 'cached_tokens' THEN n.cached_tokens
            WHEN 'computed_tokens' THEN n.computed_tokens
            WHEN 'completion_tokens' THEN n.completion_tokens
            WHEN 'computed_tokens_per_computed_user' THEN n.computed_tokens / n.computed_users
        END AS double) AS value
    FROM bases AS n
    CROSS JOIN (
        VALUES
        (1, 'users'),
        (2, 'failed_users'),
        (3, 'tags'),
        (4, 'distinct_tags'),
        (5, 'tags_per_user'),
        (6, 'candidates'),
        (7, 'explained_items'),
        (8, 'explanations'),
        (9, 'tag_panel_judged'),
        (10, 'tag_panel_s_ratio'),
        (11, 'tag_panel_a_ratio'),
        (12, 'tag_panel_b_ratio'),
        (13, 'tag_panel_failed'),
        (14, 'tag_one_shot_judged'),
        (15, 'tag_one_shot_s_ratio'),
        (16, 'tag_one_shot_a_ratio'),
        (17, 'tag_one_shot_b_ratio'),
        (18, 'tag_one_shot_failed'),
        (19, 'explanation_panel_judged'),
        (20, 'explanation_panel_s_ratio'),
        (21, 'explanation_panel_a_ratio'),
        (22, 'explanation_panel_b_ratio'),
        (23, 'explanation_panel_failed'),
        (24, 'explanation_one_shot_judged'),
        (25, 'explanation_one_shot_s_ratio'),
        (26, 'explanation_one_shot_a_ratio'),
        (27, 'explanation_one_shot_b_ratio'),
        (28, 'explanation_one_shot_failed'),
        (29, 'quarantined'),
        (30, 'calls'),
        (31, 'prompt_tokens'),
        (32, 'cached_tokens'),
        (33, 'computed_tokens'),
        (34, 'completion_tokens'),
        (35, 'computed_tokens_per_computed_user')
    ) AS m (metric_index, metric)
),

with_v1 AS (
    SELECT
        ds,
        scenario,
        metric_index,
        metric,
        method,
        value,
        max(CASE WHEN method = 'v1' THEN value END) OVER (PARTITION BY ds, scenario, metric) AS v1_value
    FROM metrics
)

SELECT
    ds,
    scenario,
    metric_index,
    metric,
    method,
    value,
    v1_value,
    value / nullif(v1_value, 0) AS ratio_to_v1
FROM with_v1
