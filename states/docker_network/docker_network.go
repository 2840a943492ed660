// Package docker_network is Salt's state module "docker_network": networks of a Docker daemon (salt/states/docker_network.py). It works
// through the execution module docker.
package docker_network

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// docker_network.present differs: the option com.docker.network.bridge.name, which stock changes while it compares, is the one that is
// given when the network is created again.

func init() { states.Register(Module) }

// Module is Salt's "docker_network".
var Module = &states.Module{Name: "docker_network", Doc: "Networks of Docker.", Needs: "docker.version", Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such network. Containers are disconnected from it.\n\nname\n    the network\n", Params: []modules.Param{{Name: "name"}}, Run: absent},
	{Name: "present", Doc: `Have a network. One with another configuration is created again.

name
    the network
containers
    running containers to connect to it
reconnect
    whether to connect the containers again that were connected to a network which is created again
driver, driver_opts, internal, attachable, labels, enable_ipv6, subnet, gateway, ip_range, aux_address, ipam_driver, ipam_opts, ipam_pools, ipam
    its configuration
`, Params: []modules.Param{
		{Name: "name"}, {Name: "skip_translate", Optional: true}, {Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true}, {Name: "containers", Optional: true}, {Name: "reconnect", Default: true},
	}, Kwargs: "kwargs", Run: present},
}}

type dict = map[string]any

func get(m dict, key string) dict { v, _ := m[key].(dict); return v }

// call calls a function of the module docker whose answer is a dictionary.
func call(ctx context.Context, c *states.Call, fun string, arg any) (dict, error) {
	v, err := c.Exec(ctx, "docker."+fun, arg)
	m, _ := v.(dict)
	return m, err
}

// find returns the daemon's description of the network, or nil if it is missing. problem is the text of an error that
// becomes the comment.
func find(ctx context.Context, c *states.Call) (network dict, problem string, err error) {
	network, err = call(ctx, c, "inspect_network", c.Value("name"))
	if err == nil || !modules.IsExecError(err) {
		return network, "", err
	}
	if strings.Contains(err.Error(), "404") {
		return nil, "", nil
	}
	return nil, err.Error(), nil
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	network, problem, err := find(ctx, c)
	ret := c.Result()
	switch {
	case err != nil:
		return nil, err
	case problem != "":
		return ret.As(states.False, problem)
	case network == nil:
		return ret.As(states.True, "Network '"+c.Name()+"' already absent")
	case c.Test():
		return ret.As(states.None, "Network '"+c.Name()+"' will be removed")
	}
	return remove(ctx, c, network)
}

// remove removes a network, with the containers' connections to it.
func remove(ctx context.Context, c *states.Call, network dict) (*states.Result, error) {
	ret := c.Result()
	ret.Name = pytext.Str(network["Name"])
	problem := ""
	containers := get(network, "Containers")
	for _, id := range slices.Sorted(maps.Keys(containers)) {
		name := id
		if info, err := call(ctx, c, "inspect_container", id); err == nil {
			name = strings.TrimLeft(pytext.Str(info["Name"]), "/")
		}
		_, err := c.Exec(ctx, "docker.disconnect_container_from_network", id, network["Name"])
		switch {
		case err == nil:
			list, _ := ret.Changes["disconnected"].([]any)
			ret.Changes["disconnected"] = append(list, name)
		case !modules.IsExecError(err):
			return nil, err
		default:
			problem = "Failed to disconnect container '" + name + "' : " + err.Error()
		}
	}
	if problem != "" {
		// As in stock, which joins the letters of the text as if they were lines.
		return ret.As(states.False, strings.Join(strings.Split(problem, ""), "\n"))
	}
	if _, err := c.Exec(ctx, "docker.remove_network", network["Name"]); err != nil {
		if !modules.IsExecError(err) {
			return nil, err
		}
		return ret.As(states.False, "Failed to remove network: "+err.Error())
	}
	ret.Changes["removed"] = true
	return ret.As(states.True, "Removed network '"+pytext.Str(network["Name"])+"'")
}

// wish is the wanted network.
type wish struct {
	*states.Call
	ret  *states.Result
	kw   dict
	ipam dict
	// connect are the containers to connect by id, lost those that the network had before it was created again.
	connect, lost dict
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	w := &wish{Call: c, ret: c.Result(), connect: dict{}, lost: dict{}}
	network, problem, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	if problem != "" {
		return w.ret.As(states.False, problem)
	}
	if err := w.containers(ctx); err != nil {
		return nil, err
	}
	if problem, err := w.configuration(); err != nil || problem != "" {
		if err != nil {
			problem = modules.ExceptionText(err)
		}
		return w.ret.As(states.False, problem)
	}
	create := true
	if network != nil {
		w.ret.Comment = "Network '" + c.Name() + "' already exists, and is configured as specified"
		over, err := w.compare(ctx, network, &create)
		if err != nil || over != nil {
			return over, err
		}
	}
	if create {
		if c.Test() {
			return w.ret.As(states.None, "Network will be created")
		}
		kw := maps.Clone(w.kw)
		kw["ipam"], kw["skip_translate"] = w.ipam, true
		if _, err := c.ExecKw(ctx, "docker.create_network", []any{c.Value("name")}, kw); err != nil {
			return w.ret.As(states.False, "Failed to create network '"+c.Name()+"': "+modules.ExceptionText(err))
		}
		if network != nil {
			w.ret.Changes["recreated"] = true
			w.ret.Comment = "Network '" + c.Name() + "' was replaced with updated config"
		} else {
			w.ret.Changes["created"] = true
			w.ret.Comment = "Network '" + c.Name() + "' created"
		}
		network = dict{}
	}
	return w.ret, w.join(ctx, get(network, "Containers"))
}

// containers finds the containers to connect.
func (w *wish) containers(ctx context.Context) error {
	var gone, stopped []string
	if v := w.Value("containers"); pytext.Truth(v) {
		for _, name := range splitInput(v) {
			info, err := call(ctx, w.Call, "inspect_container", name)
			switch {
			case err != nil && !modules.IsExecError(err):
				return err
			case err != nil || info["Id"] == nil:
				gone = append(gone, pytext.Str(name))
			case !pytext.Truth(get(info, "State")["Running"]):
				stopped = append(stopped, pytext.Str(name))
			default:
				w.connect[pytext.Str(info["Id"])] = dict{"Name": name}
			}
		}
	}
	if len(gone) > 0 {
		w.ret.Warn("The following containers do not exist: " + strings.Join(gone, ", ") + ".")
	}
	if len(stopped) > 0 {
		w.ret.Warn("The following containers are not running: " + strings.Join(stopped, ", ") + ".")
	}
	return nil
}

// splitInput returns the elements of a list, or the parts of a text between commas (salt.utils.args split_input).
func splitInput(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	var out []any
	for s := range strings.SplitSeq(pytext.Str(v), ",") {
		out = append(out, pytext.Strip(s))
	}
	return out
}

// configuration translates the arguments and takes those about addresses apart.
func (w *wish) configuration() (problem string, err error) {
	if w.kw, err = dockerargs.Network(w.OwnKeywords(), dockerargs.OptionsOf(w.Call.Call)); err != nil {
		return "", err
	}
	about := dict{}
	for key := range strings.FieldsSeq("ipam ipam_pools " + dockerargs.IPAMArgs) {
		if v, ok := w.kw[key]; ok {
			about[key] = v
			delete(w.kw, key)
		}
	}
	if v, ok := about["ipam"]; ok {
		if len(about) > 1 {
			return "Cannot mix the 'ipam' argument with any of the IPAM config arguments. See documentation for details.", nil
		}
		w.ipam, _ = v.(dict)
		return "", nil
	}
	pools, _ := about["ipam_pools"].([]any)
	w.ipam, err = dockerargs.IPAM(pools, about)
	return "", err
}

// compare compares the network with a temporary one in the wanted configuration, and removes the network if they
// differ. create is set if it has to be created again. A result ends the state.
func (w *wish) compare(ctx context.Context, network dict, create *bool) (over *states.Result, err error) {
	letters := make([]byte, 20)
	for i := range letters {
		letters[i] = 'a' + byte(rand.N(26))
	}
	temp := string(letters)
	kw := maps.Clone(w.kw)
	v6 := pytext.Truth(kw["enable_ipv6"])
	// What addresses the network has does not matter here, and IPv6 could not be without a subnet.
	kw["enable_ipv6"], kw["skip_translate"] = false, true
	if options, ok := kw["options"].(dict); ok && kw["driver"] == "bridge" && options["com.docker.network.bridge.name"] != nil {
		name := pytext.Str(options["com.docker.network.bridge.name"]) + "comp"
		options = maps.Clone(options)
		options["com.docker.network.bridge.name"] = name[max(0, len(name)-14):]
		kw["options"] = options
	}
	if _, err := w.ExecKw(ctx, "docker.create_network", []any{temp}, kw); err != nil {
		if !modules.IsExecError(err) {
			return nil, err
		}
		return w.ret.As(states.False, "Failed to create temp network for comparison: "+err.Error())
	}
	defer func() {
		if _, wrong := w.Exec(context.WithoutCancel(ctx), "docker.remove_network", temp); wrong != nil && err == nil {
			w.ret.Warn("Failed to remove temp network '" + temp + "': " + wrong.Error() + ".")
		}
	}()
	info, err := call(ctx, w.Call, "inspect_network", temp)
	if err != nil {
		if !modules.IsExecError(err) {
			return nil, err
		}
		return w.ret.As(states.False, "Failed to inspect temp network: "+err.Error())
	}
	info["EnableIPv6"], info["IPAM"] = v6, w.ipam
	w.forgetDefault(network)
	v, err := w.ExecKw(ctx, "docker.compare_networks", []any{network, info}, dict{"ignore": "Name,Id,Created,Containers,Status"})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(v) {
		*create = false
		return nil, nil
	}
	w.ret.Changes[w.Name()] = v
	if w.Test() {
		return w.ret.As(states.None, "Network would be recreated with new config")
	}
	w.lose(ctx, network)
	gone, err := remove(ctx, w.Call, network)
	if err != nil || gone.Result != states.True {
		return gone, err
	}
	return nil, nil
}

// forgetDefault leaves the addresses out of a network that Docker chose by itself, if the arguments want none.
func (w *wish) forgetDefault(network dict) {
	wanted, _ := w.ipam["Config"].([]any)
	ipam := get(network, "IPAM")
	has, _ := ipam["Config"].([]any)
	if len(wanted) > 0 || len(has) != 1 {
		return
	}
	pool, _ := has[0].(dict)
	for k, v := range pool {
		if k != "Gateway" && k != "Subnet" && v != nil && v != "" {
			return
		}
	}
	if pool["Gateway"] != nil && pool["Subnet"] != nil {
		ipam["Config"] = []any{}
	}
}

// lose notes which containers the network has, and how.
func (w *wish) lose(ctx context.Context, network dict) {
	w.lost, _ = nested.Copy(get(network, "Containers")).(dict)
	if pytext.Truth(w.Value("containers")) || !w.Bool("reconnect") {
		return
	}
	for id := range w.lost {
		info, err := call(ctx, w.Call, "inspect_container", id)
		if err != nil {
			continue
		}
		in := get(get(get(info, "NetworkSettings"), "Networks"), w.Name())
		for _, key := range [...]string{"Links", "Aliases"} {
			if m, ok := w.lost[id].(dict); ok && pytext.Truth(in[key]) {
				m[key] = in[key]
			}
		}
	}
}

// join connects the containers that are not in the network yet.
func (w *wish) join(ctx context.Context, connected dict) error {
	if w.Value("containers") == nil && w.Bool("reconnect") && len(w.lost) > 0 {
		w.connect = w.lost
	}
	note := func(key string, v any) {
		list, _ := w.ret.Changes[key].([]any)
		w.ret.Changes[key] = append(list, v)
	}
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(w.connect)) {
		if _, ok := connected[id]; ok {
			continue
		}
		info, _ := w.connect[id].(dict)
		kw, how := dict{}, "connected"
		if _, ok := w.lost[id]; ok {
			how = "reconnected"
			for _, names := range [...][2]string{{"IPv4Address", "ipv4_address"}, {"IPV6Address", "ipv6_address"}, {"Links", "links"}, {"Aliases", "aliases"}} {
				v, ok := info[names[0]]
				if s, isText := v.(string); isText {
					v, _, _ = strings.Cut(s, "/")
				}
				if ok {
					kw[names[1]] = v
				}
			}
		}
		_, err := w.ExecKw(ctx, "docker.connect_container_to_network", []any{id, w.Value("name")}, kw)
		if err != nil && modules.IsExecError(err) && len(kw) > 0 { // not with its old addresses
			_, err = w.Exec(ctx, "docker.connect_container_to_network", id, w.Value("name"))
		}
		switch {
		case err == nil:
			note(how, info["Name"])
		case !modules.IsExecError(err):
			return err
		default:
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		if w.ret.Comment != "" {
			w.ret.Comment += ". "
		}
		w.ret.Comment += strings.Join(problems, ". ") + "."
	} else {
		w.ret.Result = states.True
	}
	for _, id := range slices.Sorted(maps.Keys(w.lost)) {
		if _, ok := w.connect[id]; !ok {
			info, _ := w.lost[id].(dict)
			note("disconnected", info["Name"])
		}
	}
	return nil
}
