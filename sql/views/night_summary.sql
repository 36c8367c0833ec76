-- A night in one row for each method: users, what they got, how it was judged, what it cost.
-- grain: one row per ds, scenario and method
-- ds: Business date of the night
-- scenario: Where the result is shown
-- method: Recipe
-- user_count: Users of the night
-- computed_user_count: Users whose rows this night made, by the visible attempt or an earlier one
-- carried_user_count: Users who show an older night's rows
-- failed_user_count: Users in quarantine
-- skipped_user_count: Users with nothing to compute from
-- persona_count: Points of view shown
-- tag_count: Rows of intent_tags shown
-- distinct_tag_count: Distinct tags among them
-- candidate_count: Rows of candidate_items shown
-- explained_item_count: Items shown with an explanation, each user's counted
-- unexplained_item_count: Items whose explanation failed
-- explanation_count: Distinct explanations shown
-- tag_panel_s_count: Tags graded S (superior) by the panel
-- tag_panel_a_count: Tags graded A (average) by the panel
-- tag_panel_b_count: Tags graded B (bad) by the panel
-- tag_panel_failed_count: Tags without a grade, because the panel failed
-- tag_one_shot_s_count: Tags graded S (superior) by the one-shot judge
-- tag_one_shot_a_count: Tags graded A (average) by the one-shot judge
-- tag_one_shot_b_count: Tags graded B (bad) by the one-shot judge
-- tag_one_shot_failed_count: Tags without a grade, because the one-shot judge failed
-- explanation_panel_s_count: Explanations graded S (superior) by the panel
-- explanation_panel_a_count: Explanations graded A (average) by the panel
-- explanation_panel_b_count: Explanations graded B (bad) by the panel
-- explanation_panel_failed_count: Explanations without a grade, because the panel failed
-- explanation_one_shot_s_count: Explanations graded S (superior) by the one-shot judge
-- explanation_one_shot_a_count: Explanations graded A (average) by the one-shot judge
-- explanation_one_shot_b_count: Explanations graded B (bad) by the one-shot judge
-- explanation_one_shot_failed_count: Explanations without a grade, because the one-shot judge failed
-- quarantined_count: Rows of the night in quarantine, of any attempt, each fault once
-- call_count: Model calls made for the night by any attempt, each counted once
-- prompt_tokens: Prompt tokens submitted by these calls
-- cached_tokens: Of these, read from the prefix cache; null where the engine does not say
-- computed_tokens: Prompt tokens computed, the headline of cost; null where the engine does not say
-- completion_tokens: Tokens written
-- night_users_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- environment_signals_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- user_contexts_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- intents_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- candidate_items_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- explanations_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- tag_verdicts_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- explanation_verdicts_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- publish_night_seconds: Seconds of the stage in the visible attempt, all methods together; null where it did not run
-- night_seconds: Seconds of all stages of the visible attempt, all methods together
WITH users AS (
    SELECT
        ds,
        scenario,
        method,
        max(publish_id) AS publish_id,
        count(*) AS user_count,
        count(CASE WHEN status = 'computed' THEN 1 END) AS computed_user_count,
        count(CASE WHEN status = 'carried' THEN 1 END) AS carried_user_count,
        count(CASE WHEN status = 'failed' THEN 1 END) AS failed_user_count,
        count(CASE WHEN status = 'skipped' THEN 1 END) AS skipped_user_count
    FROM night_users
    GROUP BY ds, scenario, method
),

personas AS (
    SELECT
        ds,
        scenario,
        method,
        count(*) AS persona_count
    FROM intent_plans
    GROUP BY ds, scenario, method
),

tags AS (
    SELECT
        ds,
        scenario,
        method,
        count(*) AS tag_count,
        count(DISTINCT tag_id) AS distinct_tag_count
    FROM intent_tags_v1
    GROUP BY ds, scenario, method
),

candidates AS (
    SELECT
        ds,
        scenario,
        method,
        count(*) AS candidate_count
    FROM candidate_items
    GROUP BY ds, scenario, method
),

assigned AS (
    SELECT
        ds,
        scenario,
        method,
        count(CASE WHEN status <> 'failed' THEN 1 END) AS explained_item_count,
        count(CASE WHEN status = 'failed' THEN 1 END) AS unexplained_item_count,
        count(DISTINCT CASE WHEN status <> 'failed' THEN explanation_id END) AS explanation_count
    FROM explanation_assignments
    GROUP BY ds, scenario, method
),

tag_grades AS (
    SELECT
        ds,
        scenario,
        method,
        count(CASE WHEN judge_method = 'panel' AND label = 'S' THEN 1 END) AS tag_panel_s_count,
        count(CASE WHEN judge_method = 'panel' AND label = 'A' THEN 1 END) AS tag_panel_a_count,
        count(CASE WHEN judge_method = 'panel' AND label = 'B' THEN 1 END) AS tag_panel_b_count,
        count(CASE WHEN judge_method = 'panel' AND status = 'failed' THEN 1 END) AS tag_panel_failed_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'S' THEN 1 END) AS tag_one_shot_s_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'A' THEN 1 END) AS tag_one_shot_a_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'B' THEN 1 END) AS tag_one_shot_b_count,
        count(CASE WHEN judge_method = 'one_shot' AND status = 'failed' THEN 1 END) AS tag_one_shot_failed_count
    FROM tag_verdicts
    GROUP BY ds, scenario, method
),

explanation_grades AS (
    SELECT
        ds,
        scenario,
        method,
        count(CASE WHEN judge_method = 'panel' AND label = 'S' THEN 1 END) AS explanation_panel_s_count,
        count(CASE WHEN judge_method = 'panel' AND label = 'A' THEN 1 END) AS explanation_panel_a_count,
        count(CASE WHEN judge_method = 'panel' AND label = 'B' THEN 1 END) AS explanation_panel_b_count,
        count(CASE WHEN judge_method = 'panel' AND status = 'failed' THEN 1 END) AS explanation_panel_failed_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'S' THEN 1 END) AS explanation_one_shot_s_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'A' THEN 1 END) AS explanation_one_shot_a_count,
        count(CASE WHEN judge_method = 'one_shot' AND label = 'B' THEN 1 END) AS explanation_one_shot_b_count,
        count(CASE WHEN judge_method = 'one_shot' AND status = 'failed' THEN 1 END) AS explanation_one_shot_failed_count
    FROM explanation_verdicts
    GROUP BY ds, scenario, method
),

faults AS (
    SELECT
        ds,
        scenario,
        method,
        count(*) AS quarantined_count
    FROM quarantine
    GROUP BY ds, scenario, method
),

numbered_calls AS (
    SELECT
        ds,
        scenario,
        method,
        prompt_tokens,
        cached_tokens,
        computed_tokens,
        completion_tokens,
        row_number() OVER (PARTITION BY ds, scenario, method, call_id ORDER BY attempt) AS place
    FROM llm_calls
),

calls AS (
    SELECT
        ds,
        scenario,
        method,
        count(*) AS call_count,
        cast(sum(prompt_tokens) AS bigint) AS prompt_tokens,
        cast(sum(cached_tokens) AS bigint) AS cached_tokens,
        cast(sum(computed_tokens) AS bigint) AS computed_tokens,
        cast(sum(completion_tokens) AS bigint) AS completion_tokens
    FROM numbered_calls
    WHERE place = 1
    GROUP BY ds, scenario, method
),

stages AS (
    SELECT
        publish_id,
        sum(CASE WHEN stage = 'night_users' THEN seconds END) AS night_users_seconds,
        sum(CASE WHEN stage = 'environment_signals' THEN seconds END) AS environment_signals_seconds,
        sum(CASE WHEN stage = 'user_contexts' THEN seconds END) AS user_contexts_seconds,
        sum(CASE WHEN stage = 'intents' THEN seconds END) AS intents_seconds,
        sum(CASE WHEN stage = 'candidate_items' THEN seconds END) AS candidate_items_seconds,
        sum(CASE WHEN stage = 'explanations' THEN seconds END) AS explanations_seconds,
        sum(CASE WHEN stage = 'tag_verdicts' THEN seconds END) AS tag_verdicts_seconds,
        sum(CASE WHEN stage = 'explanation_verdicts' THEN seconds END) AS explanation_verdicts_seconds,
        sum(CASE WHEN stage = 'publish_night' THEN seconds END) AS publish_night_seconds,
        sum(seconds) AS night_seconds
    FROM nights
    WHERE state = 'done'
    GROUP BY publish_id
)

SELECT
    u.ds,
    u.scenario,
    u.method,
    u.user_count,
    u.computed_user_count,
    u.carried_user_count,
    u.failed_user_count,
    u.skipped_user_count,
    coalesce(p.persona_count, 0) AS persona_count,
    coalesce(t.tag_count, 0) AS tag_count,
    coalesce(t.distinct_tag_count, 0) AS distinct_tag_count,
    coalesce(c.candidate_count, 0) AS candidate_count,
    coalesce(a.explained_item_count, 0) AS explained_item_count,
    coalesce(a.unexplained_item_count, 0) AS unexplained_item_count,
    coalesce(a.explanation_count, 0) AS explanation_count,
    coalesce(tg.tag_panel_s_count, 0) AS tag_panel_s_count,
    coalesce(tg.tag_panel_a_count, 0) AS tag_panel_a_count,
    coalesce(tg.tag_panel_b_count, 0) AS tag_panel_b_count,
    coalesce(tg.tag_panel_failed_count, 0) AS tag_panel_failed_count,
    coalesce(tg.tag_one_shot_s_count, 0) AS tag_one_shot_s_count,
    coalesce(tg.tag_one_shot_a_count, 0) AS tag_one_shot_a_count,
    coalesce(tg.tag_one_shot_b_count, 0) AS tag_one_shot_b_count,
    coalesce(tg.tag_one_shot_failed_count, 0) AS tag_one_shot_failed_count,
    coalesce(eg.explanation_panel_s_count, 0) AS explanation_panel_s_count,
    coalesce(eg.explanation_panel_a_count, 0) AS explanation_panel_a_count,
    coalesce(eg.explanation_panel_b_count, 0) AS explanation_panel_b_count,
    coalesce(eg.explanation_panel_failed_count, 0) AS explanation_panel_failed_count,
    coalesce(eg.explanation_one_shot_s_count, 0) AS explanation_one_shot_s_count,
    coalesce(eg.explanation_one_shot_a_count, 0) AS explanation_one_shot_a_count,
    coalesce(eg.explanation_one_shot_b_count, 0) AS explanation_one_shot_b_count,
    coalesce(eg.explanation_one_shot_failed_count, 0) AS explanation_one_shot_failed_count,
    coalesce(f.quarantined_count, 0) AS quarantined_count,
    coalesce(l.call_count, 0) AS call_count,
    coalesce(l.prompt_tokens, 0) AS prompt_tokens,
    CASE WHEN l.call_count IS NULL THEN 0 ELSE l.cached_tokens END AS cached_tokens,
    CASE WHEN l.call_count IS NULL THEN 0 ELSE l.computed_tokens END AS computed_tokens,
    coalesce(l.completion_tokens, 0) AS completion_tokens,
    s.night_users_seconds,
    s.environment_signals_seconds,
    s.user_contexts_seconds,
    s.intents_seconds,
    s.candidate_items_seconds,
    s.explanations_seconds,
    s.tag_verdicts_seconds,
    s.explanation_verdicts_seconds,
    s.publish_night_seconds,
    s.night_seconds
FROM users AS u
LEFT JOIN personas AS p ON u.ds = p.ds AND u.scenario = p.scenario AND u.method = p.method
LEFT JOIN tags AS t ON u.ds = t.ds AND u.scenario = t.scenario AND u.method = t.method
LEFT JOIN candidates AS c ON u.ds = c.ds AND u.scenario = c.scenario AND u.method = c.method
LEFT JOIN assigned AS a ON u.ds = a.ds AND u.scenario = a.scenario AND u.method = a.method
LEFT JOIN tag_grades AS tg ON u.ds = tg.ds AND u.scenario = tg.scenario AND u.method = tg.method
LEFT JOIN explanation_grades AS eg ON u.ds = eg.ds AND u.scenario = eg.scenario AND u.method = eg.method
LEFT JOIN faults AS f ON u.ds = f.ds AND u.scenario = f.scenario AND u.method = f.method
LEFT JOIN calls AS l ON u.ds = l.ds AND u.scenario = l.scenario AND u.method = l.method
LEFT JOIN stages AS s ON u.publish_id = s.publish_id
