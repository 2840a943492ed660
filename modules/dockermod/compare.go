package dockermod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyip"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// changed notes a difference below a part of the answer.
func changed(ret dict, part, key string, old, now any) {
	m := get(ret, part)
	if m == nil {
		m = dict{}
		ret[part] = m
	}
	m[key] = dict{"old": old, "new": now}
}

// sorted returns a list sorted by its elements' text. Any other value is returned unchanged.
func sorted(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	by := map[string]any{}
	for i, x := range list {
		by[fmt.Sprintf("%s %06d", pytext.Str(x), i)] = x
	}
	out := make([]any, 0, len(list))
	for _, k := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[k])
	}
	return out
}

// ignored returns the names in an argument as a set.
func ignored(v any) map[string]bool {
	out := map[string]bool{}
	if pytext.Truth(v) {
		for _, x := range splitInput(v) {
			out[pytext.Str(x)] = true
		}
	}
	return out
}

func (d *client) compareContainers() (any, error) {
	skip := ignored(d.Value("ignore"))
	first, err := d.inspectContainer(d.Value("first"))
	if err != nil {
		return nil, err
	}
	second, err := d.inspectContainer(d.Value("second"))
	if err != nil {
		return nil, err
	}
	ret := dict{}
	for _, part := range [...]string{"Config", "HostConfig"} {
		a, b := get(first, part), get(second, part)
		items := map[string]bool{}
		for k := range a {
			items[k] = true
		}
		for k := range b {
			items[k] = true
		}
		for item := range items {
			if skip[item] {
				continue
			}
			old, now, err := d.comparable(item, a[item], b[item])
			if err != nil {
				return nil, err
			}
			if item == "OomKillDisable" || old == nil || now == nil {
				if pytext.Truth(old) != pytext.Truth(now) {
					changed(ret, part, item, old, now)
				}
			} else if !nested.Equal(old, now) {
				changed(ret, part, item, old, now)
			}
		}
	}
	return ret, nil
}

// comparable makes two values of a setting comparable: images by their ids, links without the containers' names, lists in an order.
func (d *client) comparable(item string, old, now any) (any, any, error) {
	if old == nil || now == nil {
		return old, now, nil
	}
	switch item {
	case "Image":
		a, err := d.inspectImage(old)
		if err != nil {
			return nil, nil, err
		}
		b, err := d.inspectImage(now)
		return a["Id"], b["Id"], err
	case "Links":
		return sorted(scrubbed(old, d.Str("first"))), sorted(scrubbed(now, d.Str("second"))), nil
	case "Env", "Ulimits":
		return sorted(old), sorted(now), nil
	}
	return old, now, nil
}

func scrubbed(v any, name string) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = strings.Replace(pytext.Str(x), "/"+name+"/", "/", 1)
	}
	return out
}

// inspected returns the details and the state of a container. v is its name or id, or details that the caller has
// already.
func (d *client) inspected(v any) (info dict, state any, err error) {
	if m, ok := v.(dict); ok {
		state, err = d.state(m)
		return nested.CopyMap(m), state, err
	}
	info, err = d.inspectContainer(v)
	return info, stateOf(info), err
}

// member is a container in the networks of a comparison.
type member struct {
	info dict
	nets dict
}

func (d *client) compareContainerNetworks() (any, error) {
	keys := dict{"static": []any{"Aliases", "Links", "IPAMConfig"}, "automatic": []any{"IPAddress", "Gateway", "GlobalIPv6Address", "IPv6Gateway"}}
	if v, ok := option(d.Call, "docker.compare_container_networks").(dict); ok {
		keys = v
	}
	var sides [2]member
	for i, arg := range [...]string{"first", "second"} {
		info, state, err := d.inspected(d.Value(arg))
		if err != nil {
			return nil, err
		}
		nets := get(get(info, "NetworkSettings"), "Networks")
		for name := range nets {
			network, err := d.inspectNetwork(name)
			if err != nil {
				d.Logger().Warn("Cannot inspect a network of a container", "network", name, "error", err)
				continue
			}
			// The daemon's description of a container also contains networks that it failed to connect it to.
			if _, in := get(network, "Containers")[pytext.Str(info["Id"])]; state == "running" && !in {
				delete(nets, name)
			}
		}
		sides[i] = member{info, nets}
	}
	c := &netComparison{ret: dict{}, a: sides[0], b: sides[1]}
	c.automatic, _ = keys["automatic"].([]any)
	static, _ := keys["static"].([]any)
	for name := range c.a.nets {
		for _, key := range static {
			c.compare(name, pytext.Str(key))
		}
	}
	for name := range c.b.nets {
		if _, both := c.a.nets[name]; !both {
			for _, key := range static {
				c.compare(name, pytext.Str(key))
			}
		}
	}
	return c.ret, nil
}

type netComparison struct {
	ret       dict
	a, b      member
	automatic []any
}

// compare compares a setting of two containers in a network, or of the one that is in it.
func (c *netComparison) compare(name, key string) {
	inA, inB := get(c.a.nets, name), get(c.b.nets, name)
	old, now := inA[key], inB[key]
	both := inA != nil && inB != nil
	if key == "Aliases" {
		old, now = c.a.aliases(old, both), c.b.aliases(now, both)
	} else if both {
		old, now = sorted(old), sorted(now)
	}
	switch {
	case key == "IPAMConfig":
		c.addresses(name, inA, inB)
		if both || inA == nil || !pytext.Truth(old) {
			return
		}
		changed(c.ret, name, key, old, nil)
	case both && !pytext.Truth(old) && !pytext.Truth(now):
	case both && !nested.Equal(old, now):
		changed(c.ret, name, key, old, now)
	case !both && inA != nil && pytext.Truth(old):
		changed(c.ret, name, key, old, nil)
	case !both && inB != nil && pytext.Truth(now):
		changed(c.ret, name, key, nil, now)
	}
}

// aliases returns the network aliases of a container without those that Docker adds itself.
func (m member) aliases(v any, withID bool) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	own := []any{get(m.info, "Config")["Hostname"]}
	if withID {
		own = append(own, short(m.info["Id"]))
		list = sorted(list).([]any)
	}
	list = slices.Clone(list)
	for _, x := range own {
		if i := slices.Index(list, x); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// addresses compares how two containers got their addresses (_check_ipconfig).
func (c *netComparison) addresses(name string, inA, inB dict) {
	old, now := inA["IPAMConfig"], inB["IPAMConfig"]
	staticA, staticB := pytext.Truth(old), pytext.Truth(now)
	autoA, autoB := inA != nil && !staticA, inB != nil && !staticB
	how := func(static bool) string {
		if static {
			return "static"
		}
		return "not connected"
	}
	note := func(in dict, isOld bool) {
		found := false
		for _, k := range c.automatic {
			key := pytext.Str(k)
			if v := in[key]; pytext.Truth(v) {
				found = true
				if isOld {
					changed(c.ret, name, key, v, nil)
				} else {
					changed(c.ret, name, key, nil, v)
				}
			}
		}
		if found {
			return
		}
		if isOld {
			changed(c.ret, name, "IPConfiguration", "automatic", how(staticB))
		} else {
			changed(c.ret, name, "IPConfiguration", how(staticA), "automatic")
		}
	}
	switch {
	case autoA && !autoB:
		note(inA, true)
		if staticB {
			changed(c.ret, name, "IPAMConfig", nil, now)
		}
	case autoB && !autoA:
		note(inB, false)
		if staticA {
			changed(c.ret, name, "IPAMConfig", old, nil)
		}
	case !nested.Equal(old, now):
		changed(c.ret, name, "IPAMConfig", old, now)
	}
}

func (d *client) compareNetworks() (any, error) {
	skip := ignored(d.Value("ignore"))
	var sides [2]dict
	for i, arg := range [...]string{"first", "second"} {
		v := d.Value(arg)
		m, ok := v.(dict)
		if !ok {
			var err error
			if m, err = d.inspectNetwork(v); err != nil {
				return nil, err
			}
		}
		sides[i] = m
	}
	ret := dict{}
	items := map[string]bool{}
	for _, side := range sides {
		for k := range side {
			items[k] = true
		}
	}
	for item := range items {
		old, now := sides[0][item], sides[1][item]
		_, inFirst := sides[0][item]
		if skip[item] || !pytext.Truth(old) && !pytext.Truth(now) {
			continue
		}
		a, _ := old.(dict)
		b, _ := now.(dict)
		switch {
		case inFirst && (item == "IPAM" || item == "Options"):
			for k, x := range a {
				y := b[k]
				if item == "IPAM" && !pytext.Truth(x) && !pytext.Truth(y) || item == "Options" && k == "com.docker.network.bridge.name" {
					continue
				}
				if item == "IPAM" && k == "Config" {
					x, y = pools(x), pools(y)
					if !poolsChanged(x.([]any), y.([]any)) {
						continue
					}
				} else if nested.Equal(x, y) {
					continue
				}
				changed(ret, item, k, x, y)
			}
		case !nested.Equal(old, now):
			ret[item] = dict{"old": old, "new": now}
		}
	}
	return ret, nil
}

// pools returns the address pools of a network without their empty fields.
func pools(v any) any {
	list, _ := v.([]any)
	out := make([]any, len(list))
	for i, x := range list {
		m, _ := x.(dict)
		kept := dict{}
		for k, v := range m {
			if v != nil && v != "" {
				kept[k] = v
			}
		}
		out[i] = kept
	}
	return sorted(out)
}

// poolsChanged compares pools by their subnets. A gateway that only one side names does not count where it is the first address, which
// Docker takes by itself.
func poolsChanged(first, second []any) bool {
	bySubnet := func(list []any) map[any]dict {
		out := map[any]dict{}
		for _, x := range list {
			m := x.(dict)
			out[pytext.Str(m["Subnet"])] = m
		}
		return out
	}
	a, b := bySubnet(first), bySubnet(second)
	if len(a) != len(b) {
		return true
	}
	for subnet, x := range a {
		y, ok := b[subnet]
		if !ok {
			return true
		}
		x, y = nested.CopyMap(x), nested.CopyMap(y)
		dropDefault(x, y)
		dropDefault(y, x)
		if !nested.Equal(x, y) {
			return true
		}
	}
	return false
}

func dropDefault(m, other dict) {
	gateway, ok := m["Gateway"]
	if _, both := other["Gateway"]; !ok || both {
		return
	}
	network, err1 := pyip.Network(pytext.Str(m["Subnet"]), false)
	addr, err2 := pyip.Addr(pytext.Str(gateway))
	if err1 == nil && err2 == nil && network.Masked().Addr().Next() == addr {
		delete(m, "Gateway")
	}
}
