"""Spark as an engine; nothing of it is imported before it is chosen."""

from countervail.engine.spark.relation import open_spark as open_spark
