// Package redismod is Salt's execution module "redis": keys of a Redis server. Salt's source: salt/modules/redismod.py; the
// answers are those of redis-py.
package redismod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/redis"
	"github.com/brine-salt/brine/modules"
)

// place is a database of a server.
type place struct{ host, port, db, password any }

// option returns v, or if that is empty the minion's option of that name.
func option(ctx context.Context, c *modules.Call, v any, name string) (any, error) {
	if pytext.Truth(v) {
		return v, nil
	}
	return c.Exec(ctx, "config.option", name)
}

// where returns the database from arguments and configuration.
func where(ctx context.Context, c *modules.Call, get func(name string) any) (p place, err error) {
	if p.host, err = option(ctx, c, get("host"), "redis.host"); err != nil {
		return p, err
	}
	if p.port, err = option(ctx, c, get("port"), "redis.port"); err != nil {
		return p, err
	}
	if p.db = get("db"); p.db == nil {
		if p.db, err = c.Exec(ctx, "config.option", "redis.db"); err != nil {
			return p, err
		}
	}
	p.password, err = option(ctx, c, get("password"), "redis.password")
	return p, err
}

// exception is one of redis-py's.
func exception(kind, text string) error {
	return &modules.PythonError{Type: "redis.exceptions." + kind, Msg: text}
}

// failure is redis-py's exception for an error of the server or of the connection.
func failure(err error, address string) error {
	var said redis.ServerError
	if errors.As(err, &said) {
		text := string(said)
		kind := "ResponseError"
		switch word, rest, _ := strings.Cut(text, " "); word {
		case "ERR":
			text = rest
			if strings.HasPrefix(rest, "AUTH ") || strings.HasPrefix(rest, "Client sent AUTH") {
				kind = "AuthenticationError"
			}
		case "NOAUTH":
			text, kind = rest, "AuthenticationError"
		case "WRONGPASS":
			kind, text = "AuthenticationError", rest
		case "NOPERM":
			kind, text = "NoPermissionError", rest
		case "READONLY":
			kind, text = "ReadOnlyError", rest
		case "LOADING":
			kind, text = "BusyLoadingError", rest
		}
		return exception(kind, text)
	}
	var (
		errno syscall.Errno
		dns   *net.DNSError
	)
	switch {
	case errors.As(err, &dns):
		return exception("ConnectionError", "Error -2 connecting to "+address+". Name or service not known.")
	case errors.As(err, &errno):
		text, _ := modules.OSErrorText(errno)
		_, text, _ = strings.Cut(text, "] ")
		return exception("ConnectionError", fmt.Sprintf("Error %d connecting to %s. %s.", int(errno), address, text))
	}
	return exception("ConnectionError", err.Error())
}

// unreachable reports whether an error is redis-py's ConnectionError, of which AuthenticationError is one.
func unreachable(err error) bool {
	var python *modules.PythonError
	if !errors.As(err, &python) {
		return false
	}
	switch strings.TrimPrefix(python.Type, "redis.exceptions.") {
	case "ConnectionError", "AuthenticationError", "BusyLoadingError":
		return true
	}
	return false
}

// dial connects to the database.
func (p place) dial(ctx context.Context, c *modules.Call) (*redis.Client, string, error) {
	host, port := pytext.Str(p.host), int64(0)
	if pytext.Truth(p.port) || p.port == nil {
		n, err := modules.ToInt(p.port)
		if err != nil {
			return nil, "", err
		}
		port = n
	} else if _, err := modules.ToInt(p.port); err != nil {
		return nil, "", err
	}
	address := host + ":" + strconv.FormatInt(port, 10)
	r, err := redis.Dial(ctx, "tcp", net.JoinHostPort(host, strconv.FormatInt(port, 10)))
	if err != nil {
		return nil, address, failure(err, address)
	}
	if pytext.Truth(p.password) {
		_, err = r.Do("AUTH", pytext.Str(p.password))
	}
	if err == nil && pytext.Truth(p.db) {
		_, err = r.Do("SELECT", pytext.Str(p.db))
	}
	if err != nil {
		r.Close()
		return nil, address, failure(err, address)
	}
	return r, address, nil
}

// word encodes a value as redis-py does.
func word(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int64, int, uint64, float64:
		return pytext.Str(v), nil
	}
	return "", exception("DataError", "Invalid input of type: '"+modules.TypeName(v)+"'. Convert to a bytes, string, int or float first.")
}

// command sends a command to the database that get names.
func command(ctx context.Context, c *modules.Call, get func(string) any, verb []string, args ...any) (any, error) {
	p, err := where(ctx, c, get)
	if err != nil {
		return nil, err
	}
	return p.command(ctx, c, verb, args...)
}

func (p place) command(ctx context.Context, c *modules.Call, verb []string, args ...any) (any, error) {
	words := slices.Clone(verb)
	for _, a := range args {
		w, err := word(a)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	r, address, err := p.dial(ctx, c)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := r.Do(words...)
	if err != nil {
		return nil, failure(err, address)
	}
	return v, nil
}

// do sends a command with the arguments of these names.
func do(ctx context.Context, c *modules.Call, verb string, names ...string) (any, error) {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = c.Value(name)
	}
	return command(ctx, c, c.Value, strings.Fields(verb), args...)
}

// ok returns the result of commands that answer with a status text: True.
func ok(v any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	_, isText := v.(string)
	return isText, nil
}

// truth returns the result of commands that answer with 0 or 1.
func truth(v any, err error) (any, error) { return v == int64(1), err }

// list returns the result of commands that answer with a list. An empty list is not None.
func list(v any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if items, ok := v.([]any); ok && items != nil {
		return items, nil
	}
	return []any{}, nil
}

// pairs returns the result of commands that answer with alternating keys and values, as a map.
func pairs(v any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	items, _ := v.([]any)
	for i := 0; i+1 < len(items); i += 2 {
		out[pytext.Str(items[i])] = items[i+1]
	}
	return out, nil
}

func bgrewriteaof(ctx context.Context, c *modules.Call) (any, error) {
	return ok(do(ctx, c, "BGREWRITEAOF"))
}
func bgsave(ctx context.Context, c *modules.Call) (any, error) { return ok(do(ctx, c, "BGSAVE")) }
func configGet(ctx context.Context, c *modules.Call) (any, error) {
	return pairs(do(ctx, c, "CONFIG GET", "pattern"))
}
func configSet(ctx context.Context, c *modules.Call) (any, error) {
	return ok(do(ctx, c, "CONFIG SET", "name", "value"))
}
func dbsize(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "DBSIZE") }
func exists(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "EXISTS", "key") }
func expire(ctx context.Context, c *modules.Call) (any, error) {
	return truth(do(ctx, c, "EXPIRE", "key", "seconds"))
}
func expireat(ctx context.Context, c *modules.Call) (any, error) {
	return truth(do(ctx, c, "EXPIREAT", "key", "timestamp"))
}
func flushall(ctx context.Context, c *modules.Call) (any, error) { return ok(do(ctx, c, "FLUSHALL")) }
func flushdb(ctx context.Context, c *modules.Call) (any, error)  { return ok(do(ctx, c, "FLUSHDB")) }
func getKey(ctx context.Context, c *modules.Call) (any, error)   { return do(ctx, c, "GET", "key") }
func hexists(ctx context.Context, c *modules.Call) (any, error) {
	return truth(do(ctx, c, "HEXISTS", "key", "field"))
}
func hget(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "HGET", "key", "field")
}
func hgetall(ctx context.Context, c *modules.Call) (any, error) {
	return pairs(do(ctx, c, "HGETALL", "key"))
}
func hincrby(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "HINCRBY", "key", "field", "increment")
}
func hlen(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "HLEN", "key") }
func hset(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "HSET", "key", "field", "value")
}
func hsetnx(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "HSETNX", "key", "field", "value")
}
func hvals(ctx context.Context, c *modules.Call) (any, error) {
	return list(do(ctx, c, "HVALS", "key"))
}
func keys(ctx context.Context, c *modules.Call) (any, error) {
	return list(do(ctx, c, "KEYS", "pattern"))
}
func keyType(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "TYPE", "key") }
func lastsave(ctx context.Context, c *modules.Call) (any, error) {
	return do(ctx, c, "LASTSAVE")
}
func llen(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "LLEN", "key") }
func lrange(ctx context.Context, c *modules.Call) (any, error) {
	return list(do(ctx, c, "LRANGE", "key", "start", "stop"))
}
func save(ctx context.Context, c *modules.Call) (any, error) { return ok(do(ctx, c, "SAVE")) }
func setKey(ctx context.Context, c *modules.Call) (any, error) {
	return ok(do(ctx, c, "SET", "key", "value"))
}
func smembers(ctx context.Context, c *modules.Call) (any, error) {
	return list(do(ctx, c, "SMEMBERS", "key"))
}
func zcard(ctx context.Context, c *modules.Call) (any, error) { return do(ctx, c, "ZCARD", "key") }
func zrange(ctx context.Context, c *modules.Call) (any, error) {
	return list(do(ctx, c, "ZRANGE", "key", "start", "stop"))
}

func del(ctx context.Context, c *modules.Call) (any, error) {
	return command(ctx, c, func(name string) any { return c.Keywords[name] }, []string{"DEL"}, c.Extra...)
}

func hdel(ctx context.Context, c *modules.Call) (any, error) {
	return command(ctx, c, func(name string) any { return c.Keywords[name] }, []string{"HDEL"}, append([]any{c.Value("key")}, c.Extra...)...)
}

func hmget(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return nil, &modules.TypeError{Msg: "HashCommands.hmget() missing 1 required positional argument: 'keys'"}
	}
	return list(command(ctx, c, func(name string) any { return c.Keywords[name] }, []string{"HMGET"}, append([]any{c.Value("key")}, c.Extra...)...))
}

func hmset(ctx context.Context, c *modules.Call) (any, error) {
	args := []any{c.Value("key")}
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if k != "host" && k != "port" && k != "db" && k != "password" && !strings.HasPrefix(k, "__") {
			args = append(args, k, c.Keywords[k])
		}
	}
	if len(args) == 1 {
		return nil, exception("DataError", "'hmset' with 'mapping' of length 0")
	}
	return ok(command(ctx, c, func(name string) any { return c.Keywords[name] }, []string{"HMSET"}, args...))
}

func hincrbyfloat(ctx context.Context, c *modules.Call) (any, error) {
	v, err := do(ctx, c, "HINCRBYFLOAT", "key", "field", "increment")
	if err != nil {
		return nil, err
	}
	return strconv.ParseFloat(pytext.Str(v), 64)
}

func hscan(ctx context.Context, c *modules.Call) (any, error) {
	args := []any{c.Value("key"), c.Value("cursor")}
	if v := c.Value("match"); v != nil {
		args = append(args, "MATCH", v)
	}
	if v := c.Value("count"); v != nil {
		args = append(args, "COUNT", v)
	}
	v, err := command(ctx, c, c.Value, []string{"HSCAN"}, args...)
	if err != nil {
		return nil, err
	}
	answer, _ := v.([]any)
	if len(answer) != 2 {
		return nil, modules.Errorf("the answer is not that of a redis server")
	}
	cursor, err := modules.ToInt(answer[0])
	if err != nil {
		return nil, err
	}
	fields, err := pairs(answer[1], nil)
	return []any{cursor, fields}, err
}

func info(ctx context.Context, c *modules.Call) (any, error) {
	v, err := do(ctx, c, "INFO")
	if err != nil {
		return nil, err
	}
	return parseInfo(pytext.Str(v)), nil
}

func ping(ctx context.Context, c *modules.Call) (any, error) {
	v, err := do(ctx, c, "PING")
	if err != nil && unreachable(err) {
		return false, nil
	}
	return v == "PONG", err
}

func shutdown(ctx context.Context, c *modules.Call) (any, error) {
	if v, err := ping(ctx, c); err != nil || v == false {
		return false, err
	}
	if _, err := do(ctx, c, "SHUTDOWN"); err != nil && !unreachable(err) {
		return nil, err
	}
	up, err := ping(ctx, c)
	return up == false, err
}

func slaveof(ctx context.Context, c *modules.Call) (any, error) {
	host, port := c.Value("master_host"), c.Value("master_port")
	if pytext.Truth(host) && !pytext.Truth(port) {
		port = int64(6379)
	}
	if host == nil && port == nil {
		host, port = "NO", "ONE"
	}
	return ok(command(ctx, c, c.Value, []string{"SLAVEOF"}, host, port))
}

func time(ctx context.Context, c *modules.Call) (any, error) {
	v, err := list(do(ctx, c, "TIME"))
	if items, _ := v.([]any); err == nil && len(items) > 0 {
		return modules.ToInt(items[0])
	}
	return nil, err
}

func sentinelGetMasterIP(ctx context.Context, c *modules.Call) (any, error) {
	p := place{host: c.Value("host"), port: c.Value("port"), password: c.Value("password")}
	for _, o := range [...]struct {
		v    *any
		name string
		def  any
	}{{&p.host, "redis_sentinel.host", "localhost"}, {&p.port, "redis_sentinel.port", int64(26379)}, {&p.password, "redis_sentinel.password", ""}} {
		if *o.v == nil {
			v, err := c.Exec(ctx, "config.option", o.name, o.def)
			if err != nil {
				return nil, err
			}
			*o.v = v
		}
	}
	v, err := p.command(ctx, c, []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME"}, c.Value("master"))
	if err != nil {
		return nil, err
	}
	addr, _ := v.([]any)
	if len(addr) != 2 {
		return nil, &modules.TypeError{Msg: "'NoneType' object is not iterable"}
	}
	port, err := modules.ToInt(addr[1])
	return map[string]any{"master_host": addr[0], "master_port": port}, err
}

func getMasterIP(ctx context.Context, c *modules.Call) (any, error) {
	v, err := info(ctx, c)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"master_host": "", "master_port": ""}
	for k := range out {
		if x, ok := v.(map[string]any)[k]; ok {
			out[k] = x
		}
	}
	return out, nil
}
