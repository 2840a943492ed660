package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/tlsconf"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
	"github.com/brine-salt/brine/states/render/pillar"
)

// masterOptions converts Salt's master configuration. It logs the names of options that this master does not support.
func masterOptions(c *conf.Config, log *slog.Logger) (master.Options, error) {
	blacklist := &conf.Config{Opts: c.Map("publisher_acl_blacklist")}
	o := master.Options{
		ID: c.String("id"), Log: log,
		Network: master.NetworkOptions{Interface: c.String("interface"),
			PublishPort: c.Int("publish_port"),
			RetPort:     c.Int("ret_port"), Filter: c.Bool("zmq_filtering"),
			Isolate: c.Bool("isolate_minions"), Advertise: c.Strings("advertise"),
			AdvertiseTransport: c.String("transport")},
		Events: master.EventOptions{Keep: c.Strings("keep_events"),
			Presence: c.Bool("presence_events"), NoAuth: !c.Bool("auth_events"),
			AuthGrains: c.Strings("auth_events_autosign_grains")},
		PKIDir: c.String("pki_dir"), CacheDir: c.String("cachedir"),
		Keys: master.KeyOptions{Size: c.Int("keysize"),
			SignPubkey:         c.Bool("master_sign_pubkey"),
			UsePubkeySignature: c.Bool("master_use_pubkey_signature"),
			SignKeyName:        c.String("master_sign_key_name"),
			PubkeySignature:    c.String("master_pubkey_signature"),
			Policy: keys.Policy{
				AutoAccept: c.Bool("auto_accept"), OpenMode: c.Bool("open_mode"),
				AutosignFile:        c.String("autosign_file"),
				AutorejectFile:      c.String("autoreject_file"),
				AutosignGrainsDir:   c.String("autosign_grains_dir"),
				AutosignTimeout:     c.Duration("autosign_timeout", time.Minute),
				PermissivePKIAccess: c.Bool("permissive_pki_access"), Log: log,
			},
			MaxAnnouncedTenant: c.Int("max_announced_tenant"),
			MaxMinions:         c.Int("max_minions"), KeepAESOnDelete: !c.Bool("rotate_aes_key"),
			PingOnRotate:   c.Bool("ping_on_rotate"),
			PublishSession: c.Duration("publish_session", time.Second)},
		Security: master.SecurityOptions{RequestTTL: c.Duration("request_server_ttl", time.Second),
			MinimumVersion: minimumVersion(c, log), FIPS: c.Bool("fips_mode"),
			SigningAlgorithm: c.String("publish_signing_algorithm")},
		Jobs: master.JobOptions{UniqueJID: c.Bool("unique_jid"),
			Keep: keepJobs(c), Max: c.Int("max_jobs"),
			MaxBytes:     unboundedInt(c, "max_jobs_size"),
			MaxUnordered: unboundedInt(c, "max_unordered_size"), Nodegroups: c.Map("nodegroups"),
			Timeout:       c.Duration("timeout", time.Second),
			GatherTimeout: c.Duration("gather_job_timeout", time.Second)},
		Orders: master.OrderOptions{MaxUnfinished: c.Int("max_unfinished"),
			Limits: content.Limits{Files: c.Int("max_order_files"),
				Bytes:  int64(c.Int("max_order_size")) << 20,
				Pillar: int64(c.Int("max_order_pillar")) << 10,
				Total:  int64(c.Int("max_orders_size")) << 20}},
		Files: master.FileOptions{IgnoreRegex: c.Strings("file_ignore_regex"),
			IgnoreGlob: c.Strings("file_ignore_glob"),
			HashType:   c.String("hash_type"), ListCache: listCache(c),
			BufferSize:  c.Int("file_buffer_size"),
			Recv:        c.Bool("file_recv"),
			RecvMaxSize: int64(c.Int("file_recv_max_size")) << 20},
		Minions: master.MinionOptions{Peer: peerRules(c), PeerRun: ruleLists(c, "peer_run"),
			MineGet:     ruleLists(c, "mine_get"),
			NoKeyRevoke: !c.Bool("allow_minion_key_revoke"),
			NoDataCache: !c.Bool("minion_data_cache"), Opts: minionVisible(c)},
		LoopInterval: c.Duration("loop_interval", time.Second),
		Local: &master.Local{SockDir: c.String("sock_dir"), Events: localmaster.EventSockets(c, ""),
			WriteBuffer: max(0, c.Int("ipc_write_buffer")), User: c.String("user"),
			ACL: publisherACL(c), SudoACL: c.Bool("sudo_acl"),
			AnyHost:     c.Bool("allow_remote_clients"),
			DeniedUsers: blacklist.Strings("users"), DeniedFunctions: blacklist.Strings("modules"),
			NoJobCache: !c.Bool("job_cache")},
	}
	if o.Security.FIPS && o.Security.SigningAlgorithm == crypt.PKCS1v15SHA1 {
		o.Security.SigningAlgorithm = "" // Salt's default does not apply
	}
	if c.Int("autosign_timeout") <= 0 {
		o.Keys.Policy.AutosignTimeout = -1
	}
	var err error
	if _, set := c.Opts["event_access"]; set {
		if c.Map("event_access") == nil {
			return o, errors.New("event_access must be a map of minions and lists of tags")
		}
		if o.Events.Access, err = master.EventRules(roots(c, "event_access")); err != nil {
			return o, err
		}
	}
	if o.Pillar.CacheTTL, o.Pillar.CacheInMemory, err = pillarCache(c); err != nil {
		return o, err
	}
	if err := c.RefuseLocks(); err != nil {
		return o, err
	}
	for _, name := range unsupportedOptions(c) {
		log.Warn("The option " + name + " is not supported by this master and has no effect")
	}
	return o, listenWith(c, &o)
}

// keepJobs returns keep_jobs_seconds, or a negative duration to keep jobs forever. If it has its default, its older
// name keep_jobs applies, in hours (salt/utils/job.py of 3006 and 3007: get_keep_jobs_seconds).
func keepJobs(c *conf.Config) time.Duration {
	const day = 24 * time.Hour
	keep := c.Duration("keep_jobs_seconds", time.Second)
	if hours := c.Duration("keep_jobs", time.Hour); keep == day && hours != day {
		keep = hours
	}
	if keep < time.Second {
		return -1
	}
	return keep
}

// pillarCache returns pillar_cache, pillar_cache_ttl and pillar_cache_backend. ttl is 0 if pillar_cache is off.
func pillarCache(c *conf.Config) (ttl time.Duration, inMemory bool, err error) {
	if !c.Bool("pillar_cache") {
		return 0, false, nil
	}
	switch backend := c.String("pillar_cache_backend"); backend {
	case "disk", "":
	case "memory":
		inMemory = true
	default:
		return 0, false, fmt.Errorf("pillar_cache_backend %q is neither disk nor memory", backend)
	}
	return c.Duration("pillar_cache_ttl", time.Second), inMemory, nil
}

// minimumVersion returns minimum_auth_version. Versions before 2 have no nonce, and are not supported.
func minimumVersion(c *conf.Config, log *slog.Logger) int {
	n := c.Int("minimum_auth_version")
	if n < 2 {
		log.Warn("minimum_auth_version below 2 counts as 2: this master does not speak older versions")
	}
	return min(max(n, 2), protocol.Version)
}

// listenWith sets the transport.
func listenWith(c *conf.Config, o *master.Options) error {
	switch name := c.String("transport"); name {
	case "", "zeromq":
		o.Network.Listen = zeromq.Listen
		return nil
	case "tcp":
		o.Network.Listen = tcp.Listen
	case "ws":
		o.Network.Listen = ws.Listen
	default:
		return fmt.Errorf("transport %q is unknown", name)
	}
	ssl, on, err := tlsconf.Options(c.Opts["ssl"])
	if err != nil || !on {
		return err
	}
	config, err := tlsconf.Server(ssl)
	if err != nil {
		return err
	}
	o.Network.WrapListener = tlsconf.WrapListener(config)
	return nil
}

// roots returns an option like file_roots: a map from environments to directories.
func roots(c *conf.Config, name string) map[string][]string {
	out := map[string][]string{}
	for env, v := range c.Map(name) {
		out[env] = (&conf.Config{Opts: map[string]any{"": v}}).Strings("")
	}
	return out
}

// ruleLists returns an option like peer_run: a map from patterns of minions to patterns of functions. It returns nil
// if the option is not set or empty. mine_get distinguishes nil from an empty map.
func ruleLists(c *conf.Config, name string) map[string][]string {
	if len(c.Map(name)) == 0 {
		return nil
	}
	return roots(c, name)
}

// peerRules returns the option peer: a map from patterns of minions to the functions that they may publish. As in
// stock, values that are not lists are ignored.
func peerRules(c *conf.Config) map[string][]any {
	out := map[string][]any{}
	for id, v := range c.Map("peer") {
		if list, ok := v.([]any); ok {
			out[id] = list
		}
	}
	return out
}

// publisherACL returns publisher_acl: a map from users, or patterns of them, to what they may do.
func publisherACL(c *conf.Config) map[string][]any {
	out := map[string][]any{}
	for name, v := range c.Map("publisher_acl") {
		rules, ok := v.([]any)
		if !ok && v != nil {
			rules = []any{v}
		}
		out[name] = rules
	}
	return out
}

// unboundedInt returns a size in bytes from an option in MiB. It returns -1 for no limit, which is 0 or less in the
// option, and 0 for the default of master.Options if the option has no value.
func unboundedInt(c *conf.Config, name string) int64 {
	if c.Opts[name] == nil && conf.Default("master", name) == nil {
		return 0
	}
	if n := c.Int(name); n > 0 {
		return int64(n) << 20
	}
	return -1
}

// minionVisible returns the master's options that a minion may request (_master_opts).
func minionVisible(c *conf.Config) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"renderer", "failhard", "state_top", "state_top_saltenv",
		"state_auto_order", "state_events",
		"state_aggregate", "jinja_env", "jinja_sls_env", "jinja_lstrip_blocks", "jinja_trim_blocks",
		"top_file_merging_strategy",
		"env_order", "default_top"} {
		if v, ok := c.Opts[name]; ok {
			out[name] = v
		}
	}
	return out
}

// namedAtStart are options without effect that an operator should know about. ext_job_cache has an effect, but the
// master does not read jobs from there.
var namedAtStart = [...]string{"engines", "order_masters", "syndic_master", "cluster_id",
	"ext_job_cache", "event_return", "token_driver", "schedule",
	"minionfs_whitelist", "signing_key_pass", "key_cache", "ext_processes"}

// unsupportedOptions returns the names of options with a value that this master does not support.
func unsupportedOptions(c *conf.Config) []string {
	var out []string
	for _, name := range namedAtStart {
		if v, ok := c.Opts[name]; ok && conf.Truth(v) &&
			pytext.Repr(v) != pytext.Repr(conf.Default("master", name)) {
			out = append(out, name)
		}
	}
	for name := range c.Map("master_tops") {
		if name != "ext_nodes" {
			out = append(out, "master_tops: "+name)
		}
	}
	runs, _ := c.Opts["ext_pillar"].([]any)
	for _, run := range runs {
		m, _ := run.(map[string]any)
		for name := range m {
			if !slices.Contains(pillar.BuiltIn, name) {
				out = append(out, "ext_pillar: "+name)
			}
		}
	}
	for _, backend := range c.Strings("fileserver_backend") {
		if !slices.Contains([]string{"roots", "file", "git", "gitfs"}, backend) {
			out = append(out, "fileserver_backend: "+strings.TrimSpace(backend))
		}
	}
	return out
}
