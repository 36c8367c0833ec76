-- How many users each tag reaches, night after night. A tag of the night before that nobody has any more stands with 0 users.
-- grain: one row per ds, scenario, method and tag
-- ds: Business date of the night
-- scenario: Where the result is shown
-- method: Recipe
-- tag_id: The distinct tag
-- locale: Language of the tag
-- tag: The tag in words
-- user_count: Users who have it, carried ones among them
-- served_user_count: Users of the night who have any results, computed or carried
-- user_ratio: user_count of served_user_count
-- mean_rank: Its mean place in the users' lists; null where nobody has it
-- previous_ds: The visible night before, of the same scenario and method; null for the first
-- previous_user_count: Users who had it then; null without a night before
-- previous_user_ratio: Their share then; null without a night before
-- user_ratio_change: user_ratio minus previous_user_ratio; null without a night before
WITH counted AS (
    SELECT
        ds,
        scenario,
        method,
        count(CASE WHEN status IN ('computed', 'carried') THEN user_id END) AS served_user_count
    FROM night_users
    GROUP BY ds, scenario, method
),

told_nights AS (
    SELECT
        ds,
        scenario,
        method,
        served_user_count,
        lag(ds) OVER (PARTITION BY scenario, method ORDER BY ds) AS previous_ds,
        lag(served_user_count) OVER (PARTITION BY scenario, method ORDER BY ds) AS previous_served_user_count
    FROM counted
),

tags AS (
    SELECT
        ds,
        scenario,
        method,
        tag_id,
        min(locale) AS locale,
        min(tag) AS tag,
        count(*) AS user_count,
        avg(rank) AS mean_rank
    FROM intent_tags_v1
    GROUP BY ds, scenario, method, tag_id
),

either_night AS (
    SELECT
        n.ds,
        n.scenario,
        n.method,
        t.tag_id
    FROM told_nights AS n
    INNER JOIN tags AS t ON n.ds = t.ds AND n.scenario = t.scenario AND n.method = t.method
    UNION
    SELECT
        n.ds,
        n.scenario,
        n.method,
        t.tag_id
    FROM told_nights AS n
    INNER JOIN tags AS t ON n.previous_ds = t.ds AND n.scenario = t.scenario AND n.method = t.method
)

SELECT
    e.ds,
    e.scenario,
    e.method,
    e.tag_id,
    coalesce(now.locale, before.locale) AS locale,
    coalesce(now.tag, before.tag) AS tag,
    coalesce(now.user_count, 0) AS user_count,
    n.served_user_count,
    coalesce(now.user_count, 0) / nullif(cast(n.served_user_count AS double), 0) AS user_ratio,
    now.mean_rank,
    n.previous_ds,
    CASE WHEN n.previous_ds IS NOT NULL THEN coalesce(before.user_count, 0) END AS previous_user_count,
    coalesce(before.user_count, 0) / nullif(cast(n.previous_served_user_count AS double), 0) AS previous_user_ratio,
    coalesce(now.user_count, 0) / nullif(cast(n.served_user_count AS double), 0)
    - coalesce(before.user_count, 0) / nullif(cast(n.previous_served_user_count AS double), 0) AS user_ratio_change
FROM either_night AS e
INNER JOIN told_nights AS n ON e.ds = n.ds AND e.scenario = n.scenario AND e.method = n.method
LEFT JOIN tags AS now
    ON e.ds = now.ds AND e.scenario = now.scenario AND e.method = now.method AND e.tag_id = now.tag_id
LEFT JOIN tags AS before
    ON n.previous_ds = before.ds AND e.scenario = before.scenario AND e.method = before.method AND e.tag_id = before.tag_id
