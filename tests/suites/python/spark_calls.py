"""What PySpark does with a file system: `spark_calls.py hdfs://HOST:PORT LOCAL-DIRECTORY`. Spark runs in this process's JVM, with the Hadoop
client that its package brings along.
"""

import sys

from pyspark.sql import SparkSession, functions as f

import calls

URI, LOCAL = sys.argv[1], sys.argv[2]
ROWS = 20_000


def session():
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.hadoop.fs.defaultFS": URI,
        "spark.sql.warehouse.dir": f"{URI}/spark/warehouse",
        "spark.local.dir": LOCAL,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"{URI}/spark-events",
    }
    builder = SparkSession.builder.appName("calls")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class FileSystem:
    """Hadoop's FileSystem, by the session's JVM."""

    def __init__(self, spark):
        self.jvm = spark._jvm
        self.hadoop = self.jvm.org.apache.hadoop.fs.FileSystem.get(
            self.jvm.java.net.URI(URI), spark._jsc.hadoopConfiguration()
        )

    def path(self, path):
        return self.jvm.org.apache.hadoop.fs.Path(path)

    def names(self, path):
        return sorted(status.getPath().getName() for status in self.hadoop.listStatus(self.path(path)))

    def exists(self, path):
        return self.hadoop.exists(self.path(path))


def make_directory(name):
    path = f"{URI}/spark/{name}"
    files = FileSystem(session())
    assert files.hadoop.mkdirs(files.path(path))
    return path


def rows(spark, count=ROWS):
    return spark.range(count).select(
        "id", (f.col("id") % 7).alias("part"), f.concat(f.lit("row-"), f.col("id")).alias("text")
    )


def is_written(spark, here, kind, **options):
    """A table of this format comes back as it was."""
    rows(spark).write.options(**options).format(kind).save(f"{here}/table")
    files = FileSystem(spark).names(f"{here}/table")
    assert "_SUCCESS" in files and "_temporary" not in files, files
    read = spark.read.schema("id long, part long, text string").options(**options).format(kind).load(f"{here}/table")
    found = read.agg(f.count("*"), f.sum("id"), f.sum("part"), f.countDistinct("text")).first()
    assert tuple(found) == (ROWS, ROWS * (ROWS - 1) // 2, sum(n % 7 for n in range(ROWS)), ROWS), found


def test_parquet(spark, here):
    is_written(spark, here, "parquet")


def test_orc(spark, here):
    is_written(spark, here, "orc")


def test_csv(spark, here):
    is_written(spark, here, "csv", header="true")


def test_json_gzip(spark, here):
    is_written(spark, here, "json", compression="gzip")


def committed_by(spark, here, version):
    configuration = spark._jsc.hadoopConfiguration()
    configuration.set("mapreduce.fileoutputcommitter.algorithm.version", version)
    spark.sparkContext.parallelize(range(1000), 4).map(str).saveAsTextFile(f"{here}/out")
    names = FileSystem(spark).names(f"{here}/out")
    assert names == ["_SUCCESS", *(f"part-{part:05}" for part in range(4))], names
    assert spark.sparkContext.textFile(f"{here}/out").map(int).sum() == 499_500


def test_committer_1(spark, here):
    committed_by(spark, here, "1")


def test_committer_2(spark, here):
    committed_by(spark, here, "2")


def test_output_that_exists_is_refused(spark, here):
    rows(spark, 10).write.parquet(f"{here}/table")
    refused = calls.raises(Exception, lambda: rows(spark, 10).write.parquet(f"{here}/table"))
    assert "PATH_ALREADY_EXISTS" in str(refused), refused


def test_append_and_overwrite(spark, here):
    for mode, count in (("append", 100), ("append", 200), ("overwrite", 50)):
        rows(spark, 100 if mode == "append" else 50).write.mode(mode).parquet(f"{here}/table")
        assert spark.read.parquet(f"{here}/table").count() == count


def test_partitions(spark, here):
    rows(spark).write.partitionBy("part").parquet(f"{here}/table")
    assert [name for name in FileSystem(spark).names(f"{here}/table") if "=" in name] == [f"part={n}" for n in range(7)]
    assert spark.read.parquet(f"{here}/table").where("part = 3").count() == len(range(3, ROWS, 7))


def test_dynamic_partition_overwrite(spark, here):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        rows(spark, 70).write.partitionBy("part").parquet(f"{here}/table")
        rows(spark, 700).where("part = 3").write.mode("overwrite").partitionBy("part").parquet(f"{here}/table")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    counts = dict(map(tuple, spark.read.parquet(f"{here}/table").groupBy("part").count().collect()))
    assert counts == {part: 100 if part == 3 else 10 for part in range(7)}, counts


def test_table_in_the_warehouse(spark, here):
    spark.sql("drop table if exists kept")
    rows(spark, 1000).write.saveAsTable("kept")
    spark.sql("insert into kept select id + 1000, part, text from kept")
    assert spark.table("kept").agg(f.sum("id")).first()[0] == 1_999_000
    assert FileSystem(spark).exists("/spark/warehouse/kept")
    spark.sql("drop table kept")
    assert not FileSystem(spark).exists("/spark/warehouse/kept")


def test_sequence_file(spark, here):
    spark.sparkContext.parallelize([(n, f"value {n}") for n in range(1000)], 3).saveAsSequenceFile(f"{here}/out")
    assert sorted(spark.sparkContext.sequenceFile(f"{here}/out").collect())[999] == (999, "value 999")


def test_whole_and_binary_files(spark, here):
    spark.sparkContext.parallelize(["one", "two"], 2).saveAsTextFile(f"{here}/out")
    whole = spark.sparkContext.wholeTextFiles(f"{here}/out/part-*").values().collect()
    binary = spark.sparkContext.binaryFiles(f"{here}/out/part-*").values().collect()
    assert sorted(whole) == ["one\n", "two\n"] and sorted(map(bytes, binary)) == [b"one\n", b"two\n"]


def test_files_by_pattern(spark, here):
    for day in ("2026-01-01", "2026-01-02", "2026-02-01"):
        rows(spark, 10).write.parquet(f"{here}/day={day}")
    assert spark.read.parquet(f"{here}/day=2026-01-*").count() == 20


def test_streaming_goes_on_from_its_checkpoint(spark, here):
    schema = "id long, part long, text string"

    def run():
        stream = spark.readStream.schema(schema).parquet(f"{here}/in").writeStream.format("parquet")
        query = stream.option("checkpointLocation", f"{here}/checkpoint").trigger(availableNow=True).start(f"{here}/out")
        assert query.awaitTermination(120)
        return spark.read.parquet(f"{here}/out").count()

    rows(spark, 100).write.parquet(f"{here}/in")
    assert run() == 100
    rows(spark, 50).write.mode("append").parquet(f"{here}/in")
    assert run() == 150, "what came later, and nothing twice"
    names = FileSystem(spark).names(f"{here}/checkpoint")
    assert {"commits", "metadata", "offsets", "sources"} <= set(names), names


def test_reliable_checkpoint(spark, here):
    spark.sparkContext.setCheckpointDir(f"{here}/checkpoints")
    numbers = spark.sparkContext.parallelize(range(1000), 4).map(lambda n: n * 2)
    numbers.checkpoint()
    assert numbers.sum() == 999_000 and numbers.isCheckpointed()
    assert numbers.getCheckpointFile().startswith(f"{here}/checkpoints")


def test_event_log_can_be_read_while_it_is_written(spark, here):
    files = FileSystem(spark)
    application = spark.sparkContext.applicationId
    directory = next(name for name in files.names("/spark-events") if application in name)
    log = next(name for name in files.names(f"/spark-events/{directory}") if name.startswith("events_1"))
    spark.range(10).count()
    stream = files.hadoop.open(files.path(f"/spark-events/{directory}/{log}"))
    try:
        said = files.jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    # A status tells no length of a file that is being written, but a reader asks the data server for it.
    assert "SparkListenerApplicationStart" in said, said[:500]


def test_rename_and_delete_by_the_file_system(spark, here):
    files = FileSystem(spark)
    rows(spark, 10).write.parquet(f"{here}/table")
    assert files.hadoop.rename(files.path(f"{here}/table"), files.path(f"{here}/other"))
    assert files.exists(f"{here}/other/_SUCCESS") and not files.exists(f"{here}/table")
    summary = files.hadoop.getContentSummary(files.path(f"{here}/other"))
    assert summary.getFileCount() == len(files.names(f"{here}/other"))
    assert files.hadoop.delete(files.path(f"{here}/other"), True)
    assert files.names(here) == []


if __name__ == "__main__":
    calls.run(dict(globals()), session, make_directory)
    session().stop()
