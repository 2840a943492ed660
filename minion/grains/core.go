package grains

import (
	"context"
	"crypto/sha256"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules/pyobj"
)

// coreSources returns the sources of salt/grains/core.py that every platform has.
func coreSources() []source {
	return []source{
		{name: "core.id", gather: identity},
		{name: "core.env", gather: environment},
		{name: "core.version", gather: versions},
		{name: "core.locale_info", gather: localeInfo},
		{name: "core.hostname", gather: hostname},
		{name: "core.ip", gather: addresses},
		{name: "core.ip_fqdn", gather: ipFQDN},
		{name: "core.fqdns", gather: fqdns},
		{name: "core.kernel", gather: kernel},
	}
}

// identity returns the grains that follow from the configuration: id, server_id, master, append_domain.
func identity(_ context.Context, h *host) (map[string]any, error) {
	id, _ := h.o.Opts["id"].(string)
	g := map[string]any{"id": id, "server_id": serverID(id), "master": ""}
	if m, ok := h.o.Opts["master"]; ok {
		g["master"] = m
	}
	if d, ok := h.o.Opts["append_domain"]; ok {
		g["append_domain"] = d
	}
	return g, nil
}

// serverID returns the id's SHA-256 as a number modulo 2^31.
func serverID(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	n := new(big.Int).SetBytes(sum[:])
	return n.Mod(n, big.NewInt(1<<31)).Int64()
}

// environment returns cwd, path and systempath.
func environment(_ context.Context, h *host) (map[string]any, error) {
	path := strings.TrimSpace(h.getenv("PATH"))
	// As in Python, an empty PATH is a list with one empty name.
	g := map[string]any{"path": path,
		"systempath": nested.Anys(strings.Split(path, string(os.PathListSeparator)))}
	dir, err := os.Getwd()
	if err == nil {
		g["cwd"] = dir
	}
	return g, err
}

// versions returns saltversion, saltversioninfo, pythonversion and brineversion. Formulas choose packages by
// pythonversion and do not render without it, so it is the Python version of Salt's packages.
func versions(_ context.Context, h *host) (map[string]any, error) {
	v := h.o.SaltVersion
	if v == "" {
		v = DefaultSaltVersion
	}
	var info []any
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			break
		}
		info = append(info, n)
	}
	g := map[string]any{"saltversion": v, "saltversioninfo": info, "pythonversion": []any{int64(3), int64(10), int64(0), "final", int64(0)}}
	if h.o.Version != "" {
		g["brineversion"] = h.o.Version
	}
	return g, nil
}

// kernel returns kernel, nodename, kernelrelease, kernelversion and cpuarch, from uname(2).
func kernel(_ context.Context, h *host) (map[string]any, error) {
	u := h.uname()
	g := map[string]any{"kernel": u.sysname, "num_gpus": int64(0), "gpus": []any{}}
	if h.live {
		g["nodename"], g["kernelrelease"], g["kernelversion"], g["cpuarch"] = u.nodename, u.release,
			u.version, u.machine
	}
	return g, nil
}

// releaseGrains derives osrelease_info, osmajorrelease and osfinger (_osrelease_data).
func releaseGrains(name, full, release string) map[string]any {
	parts := strings.Split(release, ".")
	info := make([]any, len(parts))
	for i, p := range parts {
		info[i] = p
		if p != "" && strings.Trim(p, "0123456789") == "" {
			if n, err := strconv.ParseInt(p, 10, 64); err == nil {
				info[i] = n
			}
		}
	}
	g := map[string]any{"osrelease_info": info}
	switch first := info[0].(type) {
	case int64:
		g["osmajorrelease"] = first
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64); err == nil {
			g["osmajorrelease"] = n
		}
	}
	switch name {
	case "Debian", "FreeBSD", "OpenBSD", "NetBSD", "Mac", "Raspbian":
		full = name
	}
	finger := release
	if name != "Ubuntu" && name != "Pop" {
		finger = parts[0]
		if n, ok := info[0].(int64); ok {
			finger = strconv.FormatInt(n, 10)
		}
	}
	g["osfinger"] = full + "-" + finger
	return g
}

// optsGrain returns the whole configuration if the option grain_opts is set (salt/grains/opts.py).
func optsGrain(_ context.Context, h *host) (map[string]any, error) {
	if !truth(h.o.Opts["grain_opts"]) {
		return nil, nil
	}
	return map[string]any{"opts": h.o.Opts}, nil
}

// packageGrain returns the grain package, the kind of Salt package, which is nil here (salt/grains/package.py, since
// 3007).
func packageGrain(context.Context, *host) (map[string]any, error) {
	return map[string]any{"package": nil}, nil
}

// localeInfo returns locale_info.
func localeInfo(_ context.Context, h *host) (map[string]any, error) {
	language, encoding := h.locale()
	zone, _ := time.Now().Zone()
	return map[string]any{"locale_info": pyobj.NewDict(
		"defaultlanguage", language, "defaultencoding", encoding, "detectedencoding", "utf-8",
		"timezone", zone)}, nil
}

// machineID returns machine_id from the first of two files that exists.
func machineID(_ context.Context, h *host) (map[string]any, error) {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if !h.exists(name) {
			continue
		}
		text, err := h.read(name)
		if err != nil {
			return nil, err
		}
		return map[string]any{"machine_id": strings.TrimSpace(text)}, nil
	}
	return nil, nil
}

// shell returns the user's shell from an environment variable, or fallback.
func (h *host) shell(variable, fallback string) string {
	if s := h.getenv(variable); s != "" {
		return s
	}
	return fallback
}

// cleanNumber parses the number at the start of a field such as "16384 kB".
func cleanNumber(s string) int64 {
	f := strings.Fields(s)
	if len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
