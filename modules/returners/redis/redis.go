// Package redis is Salt's returner "redis": returns in a Redis server, in the keys that Salt uses. Salt's source:
// salt/returners/redis_return.py. Clusters are not supported.
package redis

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/redis"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// Module returns the returner "redis".
func Module() *modules.Module {
	return &modules.Module{Name: "redis_return", Virtual: "redis", Doc: "Keep returns in a Redis server.", Funcs: []modules.Def{
		returners.Def("clean_old_jobs", "Remove the returns of jobs that are not kept any more.", cleanOldJobs),
		returners.Def("get_fun", "Show the last return of a function for each minion.", getFun, "fun"),
		returners.Def("get_jid", "Show the returns of a job.", getJID, "jid"),
		returners.Def("get_jids", "List the jobs.", getJIDs),
		returners.Def("get_load", "Show what a job was.", getLoad, "jid"),
		returners.Def("get_minions", "List the minions that have returned something.", getMinions),
		returners.Prep(),
		returners.Def("returner", "Keep a return.", returner, "ret"),
		returners.Def("save_load", "Keep what a job is.", saveLoad, "jid", "load", "=minions"),
	}}
}

// connect opens a connection to the configured database.
func connect(ctx context.Context, c *modules.Call, ret map[string]any) (*redis.Client, error) {
	o := returners.Options(c, "redis", ret, returners.Attrs("host", "port", "unix_socket_path", "db", "password", "cluster_mode"), nil)
	if pytext.Truth(o["cluster_mode"]) {
		return nil, modules.Errorf("redis clusters are not supported")
	}
	get := func(key, def string) string {
		if v := o[key]; pytext.Truth(v) {
			return pytext.Str(v)
		}
		return def
	}
	network, addr := "tcp", net.JoinHostPort(get("host", "localhost"), get("port", "6379"))
	if path := get("unix_socket_path", ""); path != "" {
		network, addr = "unix", c.Path(path)
	}
	r, err := redis.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if password := get("password", ""); password != "" {
		_, err = r.Do("AUTH", password)
	}
	if db := get("db", "0"); err == nil && db != "0" {
		_, err = r.Do("SELECT", db)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func ttl(c *modules.Call) string { return strconv.FormatInt(returners.KeepSeconds(c), 10) }

func returner(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	text, err := returners.JSON(ret)
	if err != nil {
		return nil, err
	}
	r, err := connect(ctx, c, ret)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	minion, jid := pytext.Str(ret["id"]), pytext.Str(ret["jid"])
	for _, cmd := range [][]string{{"HSET", "ret:" + jid, minion, text}, {"EXPIRE", "ret:" + jid, ttl(c)},
		{"SET", minion + ":" + pytext.Str(ret["fun"]), jid, "EX", ttl(c)}, {"SADD", "minions", minion}} {
		if _, err := r.Do(cmd...); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func saveLoad(ctx context.Context, c *modules.Call) (any, error) {
	text, err := returners.JSON(c.Value("load"))
	if err != nil {
		return nil, err
	}
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, err = r.Do("SETEX", "load:"+c.Str("jid"), ttl(c), text)
	return nil, err
}

func getLoad(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Do("GET", "load:"+c.Str("jid"))
	if text, ok := v.(string); ok && err == nil {
		return returners.Parse(text)
	}
	return map[string]any{}, err
}

func getJID(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Do("HGETALL", "ret:"+c.Str("jid"))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		if text, _ := list[i+1].(string); text != "" {
			if out[pytext.Str(list[i])], err = returners.Parse(text); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func getFun(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Do("SMEMBERS", "minions")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	list, _ := v.([]any)
	for _, x := range list {
		minion := pytext.Str(x)
		jid, err := r.Do("GET", minion+":"+c.Str("fun"))
		if text, ok := jid.(string); err == nil && ok {
			v, err := r.Do("HGET", "ret:"+text, minion)
			if err != nil {
				return nil, err
			}
			if text, _ := v.(string); text != "" {
				if out[minion], err = returners.Parse(text); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

func getJIDs(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	keys, err := r.Scan("load:*")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, key := range keys {
		v, err := r.Do("GET", key)
		text, ok := v.(string)
		if err != nil || !ok {
			continue // it has expired
		}
		parsed, err := returners.Parse(text)
		if err != nil {
			return nil, err
		}
		load, _ := parsed.(map[string]any)
		jid := pytext.Str(load["jid"])
		out[jid] = returners.JobInstance(jid, load)
	}
	return out, nil
}

func getMinions(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Do("SMEMBERS", "minions")
	if list, ok := v.([]any); ok && list != nil {
		return list, err
	}
	return []any{}, err
}

func cleanOldJobs(ctx context.Context, c *modules.Call) (any, error) {
	r, err := connect(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	loads, err := r.Scan("load:*")
	if err != nil {
		return nil, err
	}
	living := map[string]bool{}
	for _, key := range loads {
		living[key] = true
	}
	keys, err := r.Scan("ret:*")
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if !living[strings.Replace(key, "ret:", "load:", 1)] {
			if _, err := r.Do("DEL", key); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
