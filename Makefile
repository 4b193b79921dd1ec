# Two commands do all set-up on a fresh Debian or Ubuntu with rustup's cargo, make and a C compiler:
#   make demo       a cluster on this machine, with a sample stored; DEMO_ONCE=1 ends it after the sample
#   make test       installs what the tests need, and passes them all
# Others: make dist (what users get), make deb (a package of it), make test-packaging, make test-helm, make interop [HADOOP=3.3.6], make interop-datadir, make faults-meta [FAULTS="--only 4 --seed 1"], make conformance, make local-reads, make webhdfs, make http-hostile, make fsck, make fsimage, make inotify, make web,
#   make monitoring, make docs-run [DOCS="--only groups"], make interop-suites, make upgrade, make operator [OPERATOR="--only lone"], make random-ops [SEED=7] [STEPS=20000], make groups, make faults-groups, make faults-data, make jobs, make contract,
#   make contract-blocks, make shell-contract, make test-zookeeper, make faults-sim [SEEDS=10], make histories [SEED=0] [ROUNDS=3000], make model, make instructions [RECORD=1], make bench-quick, make bench, make lint, make clean-clients

HADOOP ?= 3.5.0
DEMO_DIR ?= target/demo
CARGO ?= cargo
# Where cargo puts what it builds; CARGO_TARGET_DIR moves it.
BUILD := $(or $(CARGO_TARGET_DIR),target)
DESCRIPTORS := $(CURDIR)/target/clients/descriptors.bin

.PHONY: bench bench-quick bench-slice instructions deb test-packaging test-helm helm-slice inotify monitoring monitoring-slice web web-slice fsimage fsimage-slice fsck fsck-slice webhdfs webhdfs-slice http-hostile local-reads histories upgrade docs-run docs-run-slice faults-sim model contract-blocks help build dist demo test setup-test lint conformance interop interop-slice interop-datadir interop-suites faults-meta faults-meta-slice operator operator-slice planted contract contract-slice shell-contract random-ops random-ops-slice jobs test-zookeeper clean-clients groups groups-slice faults-groups faults-groups-slice faults-data

help:
	@sed -n '1,6s/^# \{0,1\}//p' Makefile

build:
	$(CARGO) build --release --locked --package clover --package clover-bench

# The programs as users get them, stripped, and the debug symbols of the server beside them: target/dist.
dist: build
	scripts/dist $(BUILD)/release/clover $(BUILD)/dist

# A package for Debian and Ubuntu: target/dist.
deb: build
	scripts/deb $(BUILD)/release/clover $(BUILD)/dist

# The package of the debug build, installed, upgraded and purged in a root directory of its own; a minute.
test-packaging:
	FOR_PACKAGING=1 scripts/setup-test $(HADOOP)
	$(CARGO) build --locked --package clover
	tests/packaging/run --clover $(BUILD)/debug/clover

# The chart for Kubernetes and the Dockerfile: rendered, checked, and the pods played; two minutes.
test-helm:
	FOR_HELM=1 scripts/setup-test $(HADOOP)
	$(CARGO) build --locked --package clover
	tests/helm/run --clover $(BUILD)/debug/clover

# The chart and the Dockerfile alone, as CI runs it; half a minute.
helm-slice:
	FOR_HELM=1 scripts/setup-test $(HADOOP)
	$(CARGO) build --locked --package clover
	tests/helm/run --clover $(BUILD)/debug/clover --only chart --only image

demo: build
	DEMO_ONCE=$(DEMO_ONCE) scripts/demo $(BUILD)/release/clover $(DEMO_DIR)

setup-test:
	scripts/setup-test $(HADOOP)

# All that CI does.
test:
	.ci/run

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) deny check licenses bans sources
	$(CARGO) xtask tidy

# Clover beside Hadoop, with a report and pictures in target/bench: ten minutes, after the build. BENCH='--only metadata,memory' measures some parts.
bench-quick: build setup-test
	$(BUILD)/release/clover bench all --quick --hadoop target/clients/contract-$(HADOOP) $(BENCH)

# The same with more rounds, loads and shapes; some hours.
bench: build setup-test
	$(BUILD)/release/clover bench all --hadoop target/clients/contract-$(HADOOP) $(BENCH)

# That the bench itself works, as CI sees it: two parts of it without Hadoop, the debug build. Its figures say nothing.
bench-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	$(BUILD)/debug/clover bench all --quick --only ceilings,metadata --out target/bench-slice

# The instructions of the servers' hot paths against the record; RECORD=1 writes it anew.
instructions: setup-test
	tests/instructions/run $(if $(RECORD),--record)

# Our protocol definitions against the descriptors in Hadoop's jars.
conformance: setup-test
	CLOVER_HADOOP_DESCRIPTORS=$(DESCRIPTORS) $(CARGO) test --locked --package clover-proto --test hadoop_descriptors -- --include-ignored

# The coordinator against real ZooKeeper servers: expiry, restarts, an ensemble of three.
test-zookeeper: setup-test
	$(CARGO) test --locked --package clover-coord --test zookeeper -- --include-ignored --test-threads 4 $(TEST)

# Stock clients against separate processes, then the kill rounds: the whole of it, which takes a while.
interop: build setup-test
	tests/interop/run --clover $(BUILD)/release/clover --hadoop $(HADOOP)

# The same with little data and few rounds, as CI runs it.
interop-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/interop/run --clover $(BUILD)/debug/clover --hadoop $(HADOOP) --slice

# A data directory that Hadoop's DataNode and Clover's data server serve in turn, below either's metadata server.
interop-datadir: build setup-test
	tests/datadir/run --clover $(BUILD)/release/clover --hadoop $(HADOOP)

# Hadoop's Java client reads blocks of its machine from files that a data server hands over. LIBRARY=DIR: with Hadoop's own libhadoop.so.
local-reads: setup-test
	$(CARGO) build --locked --package clover
	tests/local-reads/run --clover $(BUILD)/debug/clover --hadoop $(HADOOP) $(if $(LIBRARY),--library $(LIBRARY))

# The test suites that foreign clients bring along, beside what they say of Hadoop's HDFS.
interop-suites: build setup-test
	scripts/setup-suites
	tests/suites/run --clover $(BUILD)/release/clover $(SUITES)

# Stories of faults on real processes, told to a stock client: all of them, or those that FAULTS names.
faults-meta: build planted setup-test
	tests/faults/run --clover $(BUILD)/release/clover --planted $(BUILD)/planted/debug/clover --hadoop $(HADOOP) $(FAULTS)

# The stories of several groups.
faults-groups: build planted setup-test
	tests/faults/run --clover $(BUILD)/release/clover --planted $(BUILD)/planted/debug/clover --hadoop $(HADOOP) $(if $(findstring --only,$(FAULTS)),,--only groups) $(FAULTS)

# The stories of data servers and their disks.
faults-data: build planted setup-test
	tests/faults/run --clover $(BUILD)/release/clover --planted $(BUILD)/planted/debug/clover --hadoop $(HADOOP) $(if $(findstring --only,$(FAULTS)),,--only data_ --only scanner --only balancer --only mover --only satisfier) $(FAULTS)

# Actives of several groups die at a few steps that the seed draws, as CI runs it; a minute. The program for that is built where the others are, which
# saves building all else twice, and is put aside; then the usual one is in its place again.
faults-groups-slice: setup-test
	$(CARGO) build --locked --package clover --features planted-panics,failpoints
	mkdir -p $(BUILD)/planted/slice
	cp $(BUILD)/debug/clover $(BUILD)/planted/slice/clover
	$(CARGO) build --locked --package clover --package clover-bench
	tests/faults/run --clover $(BUILD)/debug/clover --planted $(BUILD)/planted/slice/clover --hadoop $(HADOOP) --slice --only groups_die --only groups_kill $(FAULTS)

# A program that panics when it is asked to, and ends or freezes at steps that a story names, for the stories about that. In a directory of its own, so
# that nobody takes it for one that may be used.
planted:
	$(CARGO) build --locked --package clover --features planted-panics,failpoints --target-dir $(BUILD)/planted

# A kill, a frozen active and a graceful hand-over, as CI runs them.
faults-meta-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	python3 -B -m unittest discover -q -s tests/faults/checks
	tests/faults/run --clover $(BUILD)/debug/clover --hadoop $(HADOOP) --slice $(FAULTS)

# A group goes from an older release to this one and back, under load, and forward for good. The older program is built once.
upgrade: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/upgrade/run --clover $(BUILD)/debug/clover --hadoop $(HADOOP) $(UPGRADE)

# Days of an operator on real processes: orders, pages, reports, full disks.
operator: build setup-test
	tests/operator/run --clover $(BUILD)/release/clover $(OPERATOR)

# The quick ones, with the debug build.
operator-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/operator/run --clover $(BUILD)/debug/clover --slice $(OPERATOR)

# A real Prometheus reads a real cluster: alerts fire on real faults, and clear. It needs root for a small disk.
monitoring: build setup-test
	tests/docs/rules --clover $(BUILD)/release/clover
	tests/monitoring/run --clover $(BUILD)/release/clover

# The same with the debug build, as CI runs it; two minutes.
monitoring-slice: setup-test
	$(CARGO) build --locked --package clover
	tests/docs/rules --clover $(BUILD)/debug/clover
	tests/monitoring/run --clover $(BUILD)/debug/clover

# What the documents tell a reader to type, typed, and held against what they show.
docs-run: build setup-test
	tests/docs/rules --clover $(BUILD)/release/clover
	tests/docs/run --clover $(BUILD)/release/clover $(DOCS)

# The same with the debug build, as CI runs it; half a minute.
docs-run-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	python3 -B -m unittest discover -q -s tests/docs/reading
	tests/docs/run --clover $(BUILD)/debug/clover $(DOCS)

# Hadoop's own tests, by the stock client: what passes on Hadoop's HDFS passes here. CONTRACT=--hadoop-column runs
# Hadoop's column anew instead of taking the stored one.
contract: build setup-test
	tests/contract/run --clover $(BUILD)/release/clover $(CONTRACT)

# Those of decommission, maintenance, movers and redundancy alone; half an hour.
contract-blocks: build setup-test
	tests/contract/run --clover $(BUILD)/release/clover --part blocks --limit 600 --work target/contract-blocks $(CONTRACT)

# A few quick classes of it, as CI runs them.
contract-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/contract/run --clover $(BUILD)/debug/clover --slice --part contract --part shell --part blocks $(CONTRACT)

# The web console in a headless Chromium: a group of three members, small screens, and pictures in target/web. Then Hadoop's own pages, on Clover and on a
# real Hadoop.
web: build setup-test
	python3 -B tests/web/run --clover $(BUILD)/release/clover --screenshots target/web $(WEB)
	python3 -B tests/web/hadoop_pages --clover $(BUILD)/release/clover

# The same on one metadata server, as CI runs it.
web-slice: setup-test
	$(CARGO) build --locked --package clover
	python3 -B tests/web/run --clover $(BUILD)/debug/clover --slice $(WEB)
	python3 -B tests/web/hadoop_pages --clover $(BUILD)/debug/clover --slice

# WebHDFS: Hadoop's own tests over webhdfs://, then curl and Python's clients, and requests that no honest client sends; with redirects and without.
webhdfs: build setup-test
	tests/contract/run --clover $(BUILD)/release/clover --part webhdfs --work target/webhdfs-contract $(CONTRACT)
	target/clients/venv/bin/python -B tests/webhdfs/run --clover $(BUILD)/release/clover $(WEBHDFS)

# A minute or two of it, as CI runs it.
webhdfs-slice: setup-test
	$(CARGO) build --locked --package clover
	tests/contract/run --clover $(BUILD)/debug/clover --part webhdfs --slice --work target/webhdfs-contract $(CONTRACT)
	target/clients/venv/bin/python -B tests/webhdfs/run --clover $(BUILD)/debug/clover --slice $(WEBHDFS)
	python3 -B tests/webhdfs/flood --clover $(BUILD)/debug/clover --slice $(FLOOD)

# Floods of bad requests on the HTTP ports: what honest clients feel, and what the servers hold meanwhile.
http-hostile: build
	python3 -B tests/webhdfs/flood --clover $(BUILD)/release/clover $(FLOOD)

# The stock `hdfs fsck` with all its options on Hadoop's HDFS and on Clover, side by side: on a good tree, and with lost and damaged replicas.
fsck: build setup-test
	tests/fsck/run --clover $(BUILD)/release/clover $(FSCK)

# The good tree alone, as CI runs it.
fsck-slice: setup-test
	$(CARGO) build --locked --package clover
	tests/fsck/run --clover $(BUILD)/debug/clover --slice $(FSCK)

# One tree on Hadoop's NameNode and on Clover, and the images of both; then a NameNode goes on with Clover's.
fsimage: build setup-test
	tests/fsimage/run --clover $(BUILD)/release/clover

# The same with few directories, as CI runs it; a minute.
fsimage-slice: setup-test
	$(CARGO) build --locked --package clover
	tests/fsimage/run --clover $(BUILD)/debug/clover --slice

# The stock client's stream of events on Hadoop's HDFS and on Clover, and over takeovers, as CI runs it; a minute.
inotify: setup-test
	$(CARGO) build --locked --package clover
	tests/inotify/run --clover $(BUILD)/debug/clover

# Several groups of two members each, as processes of their own with a real ZooKeeper: Hadoop's own tests, the commands of its shell, the same random
# calls as on a real Hadoop, and its jobs. What differs from one group has its reason in tests/contract/allowed-in-groups.txt.
groups: build setup-test
	scripts/setup-jobs $(HADOOP)
	tests/contract/run --clover $(BUILD)/release/clover --groups 3 --work target/contract-groups $(CONTRACT)
	tests/random-ops/run --clover $(BUILD)/release/clover --groups 3 --work target/random-ops-groups --seed $(or $(SEED),1) --steps $(or $(STEPS),5000) $(OPS)
	tests/contract/run-shell --clover $(BUILD)/release/clover --groups 3 --work target/shell-contract-groups
	tests/jobs/run --clover $(BUILD)/release/clover --hadoop $(HADOOP) --groups 3 --work target/jobs-groups $(JOBS)

# A minute of it, as CI runs it.
groups-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/contract/run --clover $(BUILD)/debug/clover --groups 3 --work target/contract-groups --slice $(CONTRACT)
	tests/random-ops/run --clover $(BUILD)/debug/clover --groups 3 --work target/random-ops-groups --seed $(or $(SEED),1) --steps $(or $(STEPS),400) $(OPS)

# Some seven hundred commands by Hadoop's own shell on Hadoop and on Clover, compared line by line.
shell-contract: build setup-test
	tests/contract/run-shell --clover $(BUILD)/release/clover $(CONTRACT)

# The same random calls on a real Hadoop and on Clover, compared step by step.
random-ops: build setup-test
	tests/random-ops/run --clover $(BUILD)/release/clover --seed $(or $(SEED),1) --steps $(or $(STEPS),5000) $(OPS)

# A minute of it, as CI runs it.
random-ops-slice: setup-test
	$(CARGO) build --locked --package clover --package clover-bench
	tests/random-ops/run --clover $(BUILD)/debug/clover --seed $(or $(SEED),1) --steps $(or $(STEPS),800) $(OPS)

# Hadoop's example jobs and distcp, with input and output on Clover.
jobs: build
	scripts/setup-jobs $(HADOOP)
	tests/jobs/run --clover $(BUILD)/release/clover --hadoop $(HADOOP) $(JOBS)

clean-clients:
	rm -rf target/clients

# Clusters played on virtual time, SEEDS of each story; a failure prints the line that replays it.
faults-sim:
	$(CARGO) run --release --locked --package clover-sim -- run all $(or $(FIRST_SEED),0) $(or $(SEEDS),10)

# Histories of three clients at once over two groups, each checked for linearizability: so many without faults, and so many while actives are
# killed and hand over. The debug build.
histories:
	CLOVER_SEED=$(or $(SEED),0) CLOVER_HISTORIES=$(or $(ROUNDS),3000) CLOVER_FAULTED_HISTORIES=$(or $(ROUNDS),3000) \
	$(CARGO) test --locked --package clover-metad --test histories -- --nocapture

# The bounded checks of the group's machine and of the directory log's, the long form: their profiles, MINUTES each at most, STATES each at most. A state takes
# 18 bytes, which is printed beforehand; then it says how far it came.
model:
	$(CARGO) run --release --locked --package clover-sim -- model $(or $(STATES),100000000) $(or $(WALKS),50000) $(or $(MINUTES),20)
	$(CARGO) run --release --locked --package clover-sim -- model --dirs $(or $(STATES),100000000) $(or $(WALKS),50000) $(or $(MINUTES),20)
