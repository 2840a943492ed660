//go:build linux

package sealed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/master/store/mysql"
	"github.com/brine-salt/brine/master/store/postgres"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/saltutil"
	moduletest "github.com/brine-salt/brine/modules/test"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// openStore opens what the master keeps its orders in, with Salt's job cache beside it, as a stand-alone master has.
func openStore(dir, text string) (s store.Store, shared bool, err error) {
	kind, dsn, _ := strings.Cut(text, " ")
	switch kind {
	case "memory":
		s = store.NewMemory()
	case "sqlite":
		s, err = sqlite.Open(filepath.Join(dir, "master", "jobs.sqlite"))
	case "mysql":
		s, err = mysql.Open(dsn)
		shared = true
	default:
		s, err = postgres.Open(dsn)
		shared = true
	}
	if err != nil || shared { // masters that share a database keep no other job cache
		return s, shared, err
	}
	files, err := jobcache.Open(filepath.Join(dir, "master", "cache", "jobs"), "sha256")
	if err != nil {
		return nil, false, err
	}
	return store.Multi(s, files), shared, nil
}

func debugLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// childMaster is the master's process. It answers on a unix socket.
func childMaster(dir, db, ports string) error {
	if err := os.MkdirAll(filepath.Join(dir, "master"), 0o700); err != nil {
		return err
	}
	s, shared, err := openStore(dir, db)
	if err != nil {
		return err
	}
	defer s.Close()
	audit, err := os.OpenFile(filepath.Join(dir, "master", "audit"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network:  master.NetworkOptions{Interface: "127.0.0.1"},
		PKIDir:   filepath.Join(dir, "master", "pki"),
		CacheDir: filepath.Join(dir, "master", "cache"), Store: s,
		Audit: audit, Log: debugLog(), Jobs: master.JobOptions{Timeout: 300 * time.Millisecond,
			GatherTimeout: 3 * time.Second}, Orders: master.OrderOptions{LostAfter: 10 * time.Second}, LoopInterval: time.Second}
	if shared {
		o.Shared = &master.Shared{Key: []byte("a sealing key for tests")}
	}
	if _, err := fmt.Sscan(ports, &o.Network.PublishPort, &o.Network.RetPort); err != nil {
		return err
	}
	m, err := master.New(o)
	if err != nil {
		return err
	}
	if err := logEvents(m, filepath.Join(dir, "master", "events")); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(dir, "s"))
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	go func() {
		<-m.Ready()
		_ = http.Serve(ln, masterHandler(m))
	}()
	return m.Serve(context.Background())
}

// logEvents writes all events to a file, as any program that follows the bus may.
func logEvents(m *master.Master, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sub := m.Events().Subscribe(events.SubscribeOptions{Match: func(string) bool { return true }})
	go func() {
		for {
			e, err := sub.Next(context.Background())
			if err != nil {
				return
			}
			b, _ := json.Marshal(map[string]any{"tag": e.Tag, "data": fmt.Sprintf("%q", e.Data)})
			fmt.Fprintf(f, "%s\n", b)
		}
	}()
	return nil
}

func masterHandler(m *master.Master) http.Handler {
	mux := http.NewServeMux()
	handle := func(name string, f func(ctx context.Context, d *json.Decoder) (any, error)) {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), patience)
			defer cancel()
			v, err := f(ctx, json.NewDecoder(r.Body))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	none := struct{}{}
	handle("ready", func(context.Context, *json.Decoder) (any, error) { return none, nil })
	handle("cast", func(ctx context.Context, d *json.Decoder) (any, error) {
		var o master.Order
		if err := d.Decode(&o); err != nil {
			return nil, err
		}
		_, err := m.PlaceOrder(ctx, o)
		return none, err
	})
	var which struct{ ID, Minion string }
	handle("cancel", func(ctx context.Context, d *json.Decoder) (any, error) {
		if err := d.Decode(&which); err != nil {
			return nil, err
		}
		_, err := m.CancelOrder(ctx, which.ID)
		return none, err
	})
	handle("wait", func(ctx context.Context, d *json.Decoder) (any, error) {
		if err := d.Decode(&which); err != nil {
			return nil, err
		}
		out, err := m.AwaitOrder(ctx, which.ID)
		if err != nil {
			return nil, fmt.Errorf("%+v: %w", out, err)
		}
		job, err := m.Store().Job(ctx, out.JID)
		r := out.Results[which.Minion]
		return map[string]any{"Status": r.Status.String(), "Return": fmt.Sprint(r.Return), "Shown": fmt.Sprint(job.Arg, job.Load)}, err
	})
	handle("result", func(ctx context.Context, d *json.Decoder) (any, error) {
		if err := d.Decode(&which); err != nil {
			return nil, err
		}
		out, err := m.OrderOutcome(ctx, which.ID)
		return map[string]any{"Done": out.Done, "Text": fmt.Sprintf("%+v", out.Results)}, err
	})
	handle("running", func(ctx context.Context, d *json.Decoder) (any, error) {
		if err := d.Decode(&which); err != nil {
			return nil, err
		}
		res, err := m.Run(ctx, master.Job{Fun: "saltutil.running", Tgt: []string{which.Minion}, TgtType: "list", Timeout: 20 * time.Second})
		return map[string]any{"Text": fmt.Sprint(res[which.Minion].Return)}, err
	})
	handle("left", func(ctx context.Context, _ *json.Decoder) (any, error) {
		c, ok := store.ContentsOf(m.Store())
		if !ok {
			return nil, errors.New("the store keeps no contents")
		}
		n, err := c.ContentSize(ctx, "")
		return map[string]any{"Bytes": n}, err
	})
	return mux
}

// childMinion is the minion's process, with a module that looks at what an order brings along.
func childMinion(dir, ports string) error {
	var pub, ret int64
	if _, err := fmt.Sscan(ports, &pub, &ret); err != nil {
		return err
	}
	home := filepath.Join(dir, "minion")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	opts := map[string]any{"id": "m", "master": "127.0.0.1", "publish_port": pub, "master_port": ret, "pki_dir": home + "/pki", "cachedir": home + "/cache", "mine_enabled": false,
		"cache_jobs": true, "minion_deny_functions": []any{"canary.refused"}, "recon_default": int64(100), "recon_max": int64(500), "random_reauth_delay": int64(1)}
	n, err := minion.New(minion.Options{Opts: opts, Log: debugLog(), Registry: modules.NewRegistry(canaryModule(dir), moduletest.Module, saltutil.Module),
		Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()}, Runner: &runcmd.Runner{},
		Files: func(_ map[string]any, request minion.FileRequest) modules.Files {
			return fileclient.New(fileclient.Options{Request: request, CacheDir: home + "/cache", HashType: "sha256", Log: debugLog()})
		}})
	if err != nil {
		return err
	}
	return n.Run(context.Background())
}

// canaryModule returns the digests of what a function saw.
func canaryModule(dir string) *modules.Module {
	look := func(wait bool) func(context.Context, *modules.Call) (any, error) {
		return func(ctx context.Context, c *modules.Call) (any, error) {
			arg, id := c.Str("arg"), c.Str("id")
			c.Log.Warn("the function was given " + arg) // functions log such things
			p, _ := c.PillarData()["canary"].(map[string]any)
			value, _ := p["value"].(string)
			path, err := c.Files.Cache(ctx, "salt://_order/"+id+"/secret", "base")
			if err != nil {
				return nil, err
			}
			file, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			out := ""
			for _, s := range []string{arg, value, string(file)} {
				sum := sha256.Sum256([]byte(s))
				out += hex.EncodeToString(sum[:])
			}
			if err := os.WriteFile(filepath.Join(dir, "started-"+id), nil, 0o600); err != nil || !wait {
				return out, err
			}
			for ctx.Err() == nil {
				if _, err := os.Stat(filepath.Join(dir, "go-"+id)); err == nil {
					return out, nil
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
			return nil, ctx.Err()
		}
	}
	params := []modules.Param{{Name: "arg"}, {Name: "id"}, {Name: "again"}}
	def := func(name string, run func(context.Context, *modules.Call) (any, error)) modules.Def {
		return modules.Def{Name: name, Doc: "Look at what the order brings along.", Params: params, Run: run}
	}
	return &modules.Module{Name: "canary", Funcs: []modules.Def{def("quick", look(false)), def("wait", look(true)), def("refused", look(false)),
		def("fail", func(context.Context, *modules.Call) (any, error) { return nil, modules.Errorf("canary.fail failed") })}}
}
