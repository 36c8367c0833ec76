"""Words that say of an item more than its own text does. Each is refused where the item's text does not hold it; extend freely."""

from __future__ import annotations

PRICE = """discount discounted sale deal bargain cheap cheapest cheaper free bonus coupon save savings reduced half-price lowest"""
PRAISE = """best finest top ultimate perfect number-one no.1 unbeatable premium luxury exclusive delicious tastiest freshest newest
    fresh new"""
PROOF = """guaranteed guarantee guarantees proven certified official award award-winning original authentic"""
HEALTH = """healthy healthier health cure cures cured heal heals healing relieves prevents detox slimming immune immunity medical
    clinical clinically doctor doctors therapeutic antibacterial hypoallergenic nontoxic safe"""
MAKE = """organic natural vegan vegetarian gluten-free sugar-free fat-free low-fat low-calorie non-gmo kosher halal homemade handmade
    sustainable eco-friendly recyclable biodegradable waterproof unbreakable"""
CLAIMS = frozenset(word for kind in (PRICE, PRAISE, PROOF, HEALTH, MAKE) for word in kind.split())

CHINESE_PRICE = """打折 折扣 优惠 特价 免费 便宜 低价 省钱 赠送 包邮 促销 半价"""
CHINESE_PRAISE = """最好 最佳 最低 第一 顶级 极致 完美 国家级 独家 奢华 新鲜 全新 美味"""
CHINESE_PROOF = """保证 保障 官方 认证 正品 获奖"""
CHINESE_HEALTH = """健康 治疗 疗效 药效 根治 预防 减肥 瘦身 排毒 抗菌 抗癌 免疫 医用 医生 安全 无毒"""
CHINESE_MAKE = """有机 天然 纯素 无糖 低脂 手工 环保 防水"""
CHINESE_CLAIMS = tuple(
    word for kind in (CHINESE_PRICE, CHINESE_PRAISE, CHINESE_PROOF, CHINESE_HEALTH, CHINESE_MAKE) for word in kind.split()
)
