package dockermod

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/dockerargs"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// endpoint returns a container's settings in a network, from docker-py's arguments.
func endpoint(kw dict) (dict, error) {
	out, ipam := dict{}, dict{}
	for _, k := range slices.Sorted(maps.Keys(kw)) {
		v := kw[k]
		truth := pytext.Truth(v)
		switch {
		case !slices.Contains(dockerargs.ClientArgs()["connect_container_to_network"].([]any), any(k)):
			return nil, fmt.Errorf("EndpointConfig.__init__() got an unexpected keyword argument '%s'", k)
		case k == "link_local_ips" && v != nil:
			ipam["LinkLocalIPs"] = v
		case !truth:
		case k == "aliases":
			out["Aliases"] = v
		case k == "links":
			out["Links"] = dockerargs.Links(v)
		case k == "ipv4_address":
			ipam["IPv4Address"] = v
		case k == "ipv6_address":
			ipam["IPv6Address"] = v
		case k == "mac_address":
			out["MacAddress"] = v
		case k == "driver_opt":
			if dockerargs.Pairs(v) == nil {
				return nil, fmt.Errorf("driver_opt must be a dictionary")
			}
			out["DriverOpts"] = v
		}
	}
	if len(ipam) > 0 {
		out["IPAMConfig"] = ipam
	}
	return out, nil
}

// createBody is the body of a request for a container.
func (d *client) createBody(kw dict) (dict, error) {
	all, _ := pop(kw, "networks", nil).(dict)
	mode, _ := kw["network_mode"].(string)
	network, ok := all[mode]
	args, err := dockerargs.Container(kw, dockerargs.OptionsOf(d.Call))
	if err != nil {
		return nil, err
	}
	if ok {
		m, _ := network.(dict)
		e, err := endpoint(m)
		if err != nil {
			return nil, unable("create_endpoint_config", err.Error())
		}
		args["networking_config"] = dict{"EndpointsConfig": dict{mode: e}}
	}
	var env []any
	for _, p := range dockerargs.Pairs(d.proxies()) {
		env = append(env, pytext.Str(p.Key)+"="+pytext.Str(p.Value))
	}
	body, unused, err := dockerargs.Config(d.Str("image"), args, env)
	if len(unused) > 0 {
		d.Logger().Warn("Arguments are ignored because Docker does not know them", "fun", d.Fun, "arguments", unused)
	}
	return body, err
}

// newContainer creates a container and returns what the daemon says, with its name.
func (d *client) newContainer(body dict) (dict, error) {
	name := d.Value("name")
	ret, err := d.dict("create_container", request{query: dict{"name": name, "platform": d.Keywords["platform"]}, body: body})
	if err != nil {
		return nil, err
	}
	if name == nil {
		info, err := d.inspectContainer(ret["Id"])
		if err != nil {
			return nil, err
		}
		name = strings.TrimLeft(pytext.Str(info["Name"]), "/")
	}
	ret["Name"] = name
	return ret, nil
}

// havePulled pulls the image of a new container if it is not there, unless inspect=False says that it is.
func (d *client) havePulled(kw dict) error {
	if !pytext.Truth(pop(kw, "inspect", true)) {
		return nil
	}
	id, err := d.resolveImage(d.Value("image"))
	if err == nil && id == false {
		_, err = d.pull(d.Value("image"))
	}
	return err
}

func (d *client) create() (any, error) {
	kw := d.keywords()
	if err := d.havePulled(kw); err != nil {
		return nil, err
	}
	body, err := d.createBody(kw)
	if err != nil {
		return nil, err
	}
	begin := d.Now()
	ret, err := d.newContainer(body)
	if err != nil {
		return nil, err
	}
	ret["Time_Elapsed"] = d.elapsed(begin)
	if d.Bool("start") {
		if _, err := d.start(ret["Name"]); err != nil {
			if modules.IsExecError(err) {
				err = saltcmd.Problem("Failed to start container after creation", dict{"response": ret, "error": err.Error()})
			}
			return nil, err
		}
		ret["Started"] = true
	}
	return ret, nil
}

// newNetworks returns the networks that run_container connects to.
func (d *client) newNetworks() (dict, error) {
	v := d.Value("networks")
	if s, ok := v.(string); ok && s != "" {
		out := dict{}
		for name := range strings.SplitSeq(s, ",") {
			out[name] = dict{}
		}
		return out, nil
	}
	if !pytext.Truth(v) {
		return nil, nil
	}
	m, ok := v.(dict)
	for _, conf := range m {
		_, isDict := conf.(dict)
		ok = ok && isDict
	}
	if !ok {
		return nil, modules.Usagef("Invalid format for networks argument")
	}
	return m, nil
}

func (d *client) runContainer() (any, error) {
	kw := d.keywords()
	if err := d.havePulled(kw); err != nil {
		return nil, err
	}
	removed, err := d.makeRoom()
	if err != nil {
		return nil, err
	}
	for _, name := range dockerargs.ClientArgs()["logs"].([]any) {
		delete(kw, name.(string))
	}
	body, err := d.createBody(kw)
	if err != nil {
		return nil, err
	}
	nets, err := d.newNetworks()
	if err != nil {
		return nil, err
	}
	begin := d.Now()
	ret, err := d.newContainer(body)
	if err != nil {
		return nil, err
	}
	if len(removed) > 0 {
		ret["Replaces"] = removed
	}
	if err := d.runNew(ret, nets, pytext.Truth(get(body, "HostConfig")["AutoRemove"]), begin); err != nil {
		return nil, err
	}
	return ret, nil
}

// makeRoom removes the container whose name the new one shall have.
func (d *client) makeRoom() ([]any, error) {
	name := d.Value("name")
	if name == nil {
		return nil, nil
	}
	s, err := d.after(name)
	if err != nil || s == nil {
		return nil, err
	}
	replace, force := d.Bool("replace"), d.Bool("force")
	switch {
	case s == "running" && !(replace && force):
		return nil, modules.Errorf("Container '%s' exists and is running. Run with replace=True and force=True to force removal of the existing container.", pytext.Str(name))
	case !replace:
		return nil, modules.Errorf("Container '%s' exists. Run with replace=True to remove the existing container", pytext.Str(name))
	}
	ids, err := d.rm(name, force, false, false, nil)
	list, _ := ids.([]any)
	return list, err
}

// runNew runs a new container to its end, or starts it only with bg.
func (d *client) runNew(ret, nets dict, removes bool, begin time.Time) error {
	info := dict{"return": ret}
	failed := func(err error) error {
		if !modules.IsExecError(err) {
			return err
		}
		return saltcmd.Problem(err.Error(), info)
	}
	for _, name := range slices.Sorted(maps.Keys(nets)) {
		if err := d.connectTo(ret["Id"], name, nets[name].(dict)); err != nil {
			if _, wrong := d.rm(ret["Name"], false, false, false, nil); removes && wrong != nil {
				info["other_errors"] = []any{"Failed to auto_remove container: " + wrong.Error()}
			}
			return failed(failed(err)) // as in stock, the text is there twice
		}
	}
	if _, err := d.start(ret["Id"]); err != nil {
		info["other_errors"] = []any{nil}
		return failed(err)
	}
	warn := func(text string) {
		list, _ := ret["Warnings"].([]any)
		ret["Warnings"] = append(list, text)
	}
	bg := d.Bool("bg")
	if !bg {
		text, err := d.readLogs(ret["Id"], dict{"stdout": int64(1), "stderr": int64(1), "timestamps": int64(0), "follow": int64(1), "tail": "all"})
		if err != nil && !modules.IsExecError(err) {
			return err
		}
		if err != nil {
			warn("Failed to get logs from container. This may be because the container exited before Salt was able to attach to it to " +
				"retrieve the logs. Consider setting auto_remove to False.")
		}
		ret["Logs"] = text
	}
	ret["Time_Elapsed"] = d.elapsed(begin)
	if bg || removes {
		return nil
	}
	cinfo, err := d.inspectContainer(ret["Id"])
	if err != nil {
		warn("Failed to inspect container after running")
		return nil
	}
	s := get(cinfo, "State")
	if s["Status"] != "exited" {
		warn("Container state is not 'exited'")
	}
	ret["ExitCode"] = s["ExitCode"]
	return nil
}
