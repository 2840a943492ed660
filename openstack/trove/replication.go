package trove

import (
	"context"
	"net"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// replicationSnapshot makes this instance a source, backs it up, and returns what a new replica must know.
func (g *guest) replicationSnapshot(ctx context.Context) (any, error) {
	info, err := g.c.Map("snapshot_info")
	if err != nil {
		return nil, err
	}
	if err := g.db.enableAsMaster(ctx, g.c.Value("replica_source_config")); err != nil {
		return nil, err
	}
	if err := g.createBackup(ctx, info); err != nil {
		return nil, err
	}
	user, err := g.db.replicationUser(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := g.filesystemStats()
	if err != nil {
		return nil, err
	}
	master, err := g.masterRef(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"dataset": map[string]any{"datastore_manager": g.manager, "dataset_size": stats["used"], "volume_size": stats["total"],
			"snapshot_id": info["id"]},
		"replication_strategy": g.strategy, "master": master,
		"replica_conf": map[string]any{"log_position": map[string]any{}, "replication_user": user}}, nil
}

// masterRef returns the address at which replicas find this instance.
func (g *guest) masterRef(ctx context.Context) (map[string]any, error) {
	port, err := g.db.port(ctx)
	if err != nil {
		return nil, err
	}
	host := g.address
	if host == "" {
		if host, err = ownAddress(); err != nil {
			return nil, err
		}
	}
	return map[string]any{"host": host, "port": port}, nil
}

// ownAddress returns the address of the interface with the default route, like oslo_utils.netutils.get_my_ipv4. It
// sends nothing.
func ownAddress() (string, error) {
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return "", modules.Errorf("cannot tell this instance's address: %v (set address in the option trove)", err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// source is what a replica must know about its source.
type source struct {
	host, user, password string
	port                 int64
	fresh                bool // the data is a copy of the source's, made for this replica
}

func readSource(info map[string]any) (s source, err error) {
	master, _ := info["master"].(map[string]any)
	conf, _ := info["replica_conf"].(map[string]any)
	user, _ := conf["replication_user"].(map[string]any)
	s = source{host: textOf(master, "host"), user: textOf(user, "name"), password: textOf(user, "password")}
	_, s.fresh = info["dataset"]
	if s.port, err = modules.ToInt(master["port"]); err != nil || s.host == "" || s.user == "" {
		return s, modules.Errorf("cannot attach to the source: its host, port or replication user is missing")
	}
	return s, nil
}

// attachReplica makes this instance a replica. As in Trove, a failure sets the instance's status.
func (g *guest) attachReplica(ctx context.Context, info, config any) error {
	err := g.attach(ctx, info, config)
	if err != nil {
		g.report(context.WithoutCancel(ctx), statusFailed, false)
	}
	return err
}

func (g *guest) attach(ctx context.Context, info, config any) error {
	m, ok := info.(map[string]any)
	if !ok {
		return modules.Usagef("replica_info must be a dictionary, not %s", modules.TypeName(info))
	}
	if v, ok := m["replication_strategy"]; ok {
		if err := g.checkReplica(m, pytext.Str(v)); err != nil {
			return err
		}
	}
	s, err := readSource(m)
	if err != nil {
		return err
	}
	return g.db.attach(ctx, s, config)
}

// checkReplica returns an error if the source has another replication strategy, or more data than the volume of this
// instance can hold.
func (g *guest) checkReplica(info map[string]any, strategy string) error {
	if strategy != g.strategy {
		return modules.Errorf("Instance with replication strategy %s cannot replicate from instance with replication strategy %s.",
			g.strategy, strategy)
	}
	stats, err := g.filesystemStats()
	if err != nil {
		return err
	}
	dataset, _ := info["dataset"].(map[string]any)
	var size float64
	if v := dataset["dataset_size"]; v != nil {
		if err := number(&size, v); err != nil {
			return modules.Errorf("cannot read the size of the source's data: %v", err)
		}
	}
	if total := stats["total"].(float64); total < size {
		return modules.Errorf("The target instance has only %sG free, but the replication snapshot contains %sG of data.",
			pytext.Str(total), pytext.Str(size))
	}
	return nil
}
