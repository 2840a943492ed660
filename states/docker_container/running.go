package docker_container

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func keys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// infoLines returns the texts of an error that has a list of texts as its info.
func infoLines(err error) (lines []string) {
	var e *modules.ExecError
	if errors.As(err, &e) {
		list, _ := e.Info.([]any)
		for _, x := range list {
			lines = append(lines, pytext.Str(x))
		}
	}
	return lines
}

func byName(list []network) dict {
	out := dict{}
	for _, n := range list {
		out[n.name] = n.conf
	}
	return out
}

// update is a run of docker_container.running behind its first checks.
type update struct {
	*job
	nets []network
	// image is the id of the wanted image, had the one of the container, nil if there is none.
	image, had any
	// temp is a container of the wanted configuration: the container itself if there was none, or one to compare it with.
	temp   string
	tempID any
	// keep means that the temporary container becomes the container.
	keep bool
}

func running(ctx context.Context, c *states.Call) (*states.Result, error) {
	u := &update{job: begin(ctx, c)}
	if c.Value("image") == nil {
		return u.ret.As(states.False, "The 'image' argument is required")
	}
	var over *states.Result
	var err error
	if u.nets, u.image, over, err = u.prepare(c.Value("image"), c.Value("networks")); err != nil || over != nil {
		return over, err
	}
	info, err := u.dict("inspect_container", c.Value("name"))
	if err != nil && !modules.IsExecError(err) {
		return nil, err
	}
	if u.had = info["Image"]; err == nil && u.had == nil {
		u.say("Unable to detect current image for container '" + c.Name() + "'. This might be due to a change in the Docker API.")
		return u.end(states.False)
	}
	var before any
	if u.had != nil {
		if before, err = u.call("state", c.Value("name")); err != nil {
			return nil, err
		}
	}
	u.keep = c.Bool("force") || u.had == nil || u.had != u.image
	compared := !u.keep
	if u.keep && c.Test() {
		return u.predict()
	}
	if over, err := u.create(); err != nil || over != nil {
		return over, err
	}
	if over, err := u.adjust(compared); err != nil || over != nil {
		return over, err
	}
	if !compared {
		if u.had == nil {
			u.say("Created container '" + c.Name() + "'")
		} else if ok, err := u.replace(); err != nil || !ok {
			return u.failed(err)
		}
		u.note("container_id", "added", u.tempID)
	}
	return u.start(before)
}

func (u *update) failed(err error) (*states.Result, error) {
	if err != nil {
		return nil, err
	}
	return u.end(states.False)
}

// note adds an entry to a part of the changes.
func (u *update) note(part, key string, v any) {
	m := get(u.ret.Changes, part)
	if m == nil {
		m = dict{}
		u.ret.Changes[part] = m
	}
	m[key] = v
}

func (u *update) wouldBe() string {
	if u.had == nil {
		return "Container '" + u.Name() + "' would be created"
	}
	return "Container '" + u.Name() + "' would be replaced"
}

// predict returns the result in test mode for a container that is missing, or that has another image.
func (u *update) predict() (*states.Result, error) {
	if u.Bool("force") {
		u.ret.Changes["forced_update"] = true
	} else if u.had != u.image {
		u.ret.Changes["image"] = dict{"old": u.had, "new": u.image}
	}
	u.say(u.wouldBe())
	return u.end(states.None)
}

// create creates the temporary container.
func (u *update) create() (*states.Result, error) {
	kw := u.OwnKeywords()
	delete(kw, "send_signal")
	if len(u.nets) > 0 {
		kw["networks"] = byName(u.nets)
	}
	for _, name := range [...]string{"skip_translate", "ignore_collisions", "validate_ip_addrs", "client_timeout"} {
		kw[name] = u.Value(name)
	}
	if u.had == nil {
		kw["name"] = u.Value("name")
	}
	v, err := u.ExecKw(u.ctx, "docker.create", []any{pytext.Str(u.Value("image"))}, kw)
	if err != nil {
		if u.ctx.Err() != nil {
			return nil, err
		}
		say := modules.ExceptionText(err)
		var e *modules.ExecError
		if errors.As(err, &e) {
			if info, ok := e.Info.(dict); ok && info["invalid"] != nil {
				say += "\n\nIf you feel this information is incorrect, the skip_translate argument can be used to skip input translation for the " +
					"argument(s) identified as invalid. See the documentation for details."
			}
		}
		u.say(say)
		return u.end(states.False)
	}
	m, _ := v.(dict)
	u.temp, u.tempID = pytext.Str(m["Name"]), m["Id"]
	return nil, nil
}

// replace removes the container and gives its name to the temporary one.
func (u *update) replace() (bool, error) {
	kw := dict{"stop": true}
	if v := u.Value("shutdown_timeout"); v != nil {
		kw["timeout"] = v
	}
	removed, err := u.ExecKw(u.ctx, "docker.rm", []any{u.Value("name")}, kw)
	if err != nil {
		return false, err
	}
	u.note("container_id", "removed", removed)
	done, err := u.call("rename", u.temp, u.Value("name"))
	if err != nil {
		if !modules.IsExecError(err) {
			return false, err
		}
		u.say("Failed to rename temp container: " + err.Error())
	}
	if err != nil || done != true {
		u.say("Failed to replace container '{0}'") // as in stock
		return false, nil
	}
	u.say("Replaced container '" + u.Name() + "'")
	return true, nil
}

// adjust connects the temporary container to its networks, and compares it with the container. A temporary container that does not stay
// is removed in the end.
func (u *update) adjust(compared bool) (over *states.Result, err error) {
	defer func() {
		if u.keep {
			return
		}
		if _, wrong := u.Exec(context.WithoutCancel(u.ctx), "docker.rm", u.temp); wrong != nil && err == nil {
			over, err = nil, wrong
		}
	}()
	own := any(u.temp)
	if u.had != nil {
		own = u.Value("name")
	}
	pre, err := u.dict("inspect_container", own)
	if err != nil {
		return nil, err
	}
	for _, n := range u.nets {
		if err := u.connect(u.temp, n); err != nil {
			return u.fail(err)
		}
	}
	post, err := u.disconnectOthers()
	if err != nil {
		return nil, err
	}
	v, err := u.call("compare_container_networks", pre, post)
	if err != nil {
		return nil, err
	}
	nets, _ := v.(dict)
	if compared {
		if over, err := u.compare(); err != nil || over != nil {
			return over, err
		}
	}
	if len(nets) == 0 {
		return nil, nil
	}
	u.note("container", "Networks", nets)
	switch {
	case u.Test():
		u.ret.Result = states.None
		u.say("Network configuration would be updated")
	case !u.keep:
		return u.reconnect(nets)
	}
	return nil, nil
}

func (u *update) connect(container any, n network) error {
	_, err := u.ExecKw(u.ctx, "docker.connect_container_to_network", []any{container, n.name}, n.conf)
	return err
}

// disconnectOthers disconnects the temporary container from the networks that the state does not name, if it names any.
func (u *update) disconnectOthers() (dict, error) {
	post, err := u.dict("inspect_container", u.temp)
	if err != nil || u.Value("networks") == nil {
		return post, err
	}
	others := get(get(post, "NetworkSettings"), "Networks")
	found := false
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if slices.ContainsFunc(u.nets, func(n network) bool { return n.name == name }) {
			continue
		}
		found = true
		if _, err := u.call("disconnect_container_from_network", u.temp, name); err != nil {
			return nil, err
		}
	}
	if found {
		return u.dict("inspect_container", u.temp)
	}
	return post, nil
}

// compare compares the container with the temporary one, and replaces it if they differ.
func (u *update) compare() (*states.Result, error) {
	version, err := u.dict("version")
	if err != nil {
		return nil, err
	}
	ignore := "Hostname"
	if numbers, _ := version["VersionInfo"].([]any); len(numbers) > 0 {
		if n, ok := numbers[0].(int64); ok && n >= 25 {
			ignore = "Hostname,MacAddress"
		}
	}
	v, err := u.ExecKw(u.ctx, "docker.compare_containers", []any{u.Value("name"), u.temp}, dict{"ignore": ignore})
	if err != nil {
		return nil, err
	}
	changes, _ := v.(dict)
	if len(changes) == 0 {
		return u.signal()
	}
	if suspicious(changes) {
		run := ""
		if u.Test() {
			run = " without test=True"
		}
		u.ret.Warn("The detected changes may be due to incorrect handling of arguments in earlier Salt releases. If this warning persists after " +
			"running the state again" + run + ", and no changes were made to the SLS file, then please report this.")
	}
	for k, x := range changes {
		u.note("container", k, x)
	}
	if u.Test() {
		u.ret.Result = states.None
		u.say(u.wouldBe())
		return nil, nil
	}
	u.keep = true
	if ok, err := u.replace(); err != nil || !ok {
		return u.failed(err)
	}
	u.note("container_id", "added", u.tempID)
	return nil, nil
}

// suspicious reports whether a change only removes an empty value (_check_diff).
func suspicious(changes dict) bool {
	for _, part := range changes {
		m, _ := part.(dict)
		for _, x := range m {
			change, _ := x.(dict)
			if change["new"] != nil {
				continue
			}
			switch old := change["old"].(type) {
			case string:
				if old == "" {
					return true
				}
			case []any:
				if !slices.ContainsFunc(old, func(x any) bool { return x != "" }) {
					return true
				}
			case dict:
				if len(old) == 0 {
					return true
				}
			}
		}
	}
	return false
}

// signal sends the container the signal that a watched state asks for.
func (u *update) signal() (*states.Result, error) {
	action := u.Str("watch_action")
	switch {
	case !pytext.Truth(u.Keywords["send_signal"]):
		u.say("Container '" + u.Name() + "' is already configured as specified")
	case u.Test():
		u.say("Signal " + action + " would be sent to container")
	default:
		if _, err := u.ExecKw(u.ctx, "docker.signal", []any{u.Value("name")}, dict{"signal": u.Value("watch_action")}); err != nil {
			if !modules.IsExecError(err) {
				return nil, err
			}
			u.say("Failed to signal container: " + err.Error())
			return u.end(states.False)
		}
		u.ret.Changes["signal"] = u.Value("watch_action")
		u.say("Sent signal " + action + " to container")
	}
	return nil, nil
}

// reconnect brings the changes of the networks to a container that stays.
func (u *update) reconnect(changes dict) (*states.Result, error) {
	failed := false
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		out, in, problems, err := u.reconnectOne(name)
		if err != nil {
			return nil, err
		}
		if out && !in && len(problems) > 0 {
			change := get(changes, name)
			for k, x := range change {
				if m, _ := x.(dict); m["old"] == nil {
					delete(change, k)
				} else {
					m["new"] = nil
				}
			}
		}
		failed = failed || len(problems) > 0
		u.comments = append(u.comments, problems...)
		switch {
		case out && in:
			u.say("Reconnected to network '" + name + "' with updated configuration")
		case out:
			u.say("Disconnected from network '" + name + "'")
		case in:
			u.say("Connected to network '" + name + "'")
		}
	}
	if failed {
		return u.end(states.False)
	}
	return nil, nil
}

func (u *update) reconnectOne(name string) (out, in bool, problems []string, err error) {
	v, err := u.call("connected", name)
	if err == nil {
		if list, _ := v.([]any); slices.Contains(list, u.Value("name")) {
			if _, err = u.call("disconnect_container_from_network", u.Value("name"), name); err == nil {
				out = true
			}
		}
	}
	note := func(err error) bool {
		if err != nil && modules.IsExecError(err) {
			problems = append(problems, err.Error())
		}
		return err == nil || modules.IsExecError(err)
	}
	if !note(err) {
		return out, in, problems, err
	}
	for _, n := range u.nets {
		if n.name != name {
			continue
		}
		err := u.connect(u.Value("name"), n)
		if in = err == nil; !note(err) {
			return out, in, problems, err
		}
	}
	return out, in, problems, nil
}

// start starts the container if it has to run, and ends the state.
func (u *update) start(before any) (*states.Result, error) {
	name, start := u.Value("name"), u.Bool("start")
	var now any
	if u.keep && (u.had == nil || start) || start && !u.keep && before != "running" {
		if u.Test() {
			u.say("Container would be started")
			return u.end(states.None)
		}
		m, err := u.dict("start", name)
		if err != nil {
			if u.ctx.Err() != nil {
				return nil, err
			}
			u.say("Failed to start container '" + u.Name() + "': '" + modules.ExceptionText(err) + "'")
			return u.end(states.False)
		}
		now = get(m, "state")["new"]
	} else {
		var err error
		if now, err = u.call("state", name); err != nil {
			return nil, err
		}
	}
	if !u.Test() && now == "running" {
		if err := u.automatic(); err != nil {
			return nil, err
		}
	}
	if before != now {
		u.ret.Changes["state"] = dict{"old": before, "new": now}
		if before != nil {
			u.say("State changed from '" + pytext.Str(before) + "' to '" + pytext.Str(now) + "'")
		}
	}
	if u.had != nil && u.had != u.image {
		u.say("Container has a new image")
		u.ret.Changes["image"] = dict{"old": u.had, "new": u.image}
	}
	out := states.True
	if u.Test() {
		out = u.ret.Result
		if out == states.False {
			out = states.True
		}
	}
	if now != "running" && start {
		out = states.False
		u.say("Container is not running")
	}
	return u.end(out)
}

// automatic adds the addresses to the changes that the container got by itself when it started.
func (u *update) automatic() error {
	keys := []any{"IPAddress", "Gateway", "GlobalIPv6Address", "IPv6Gateway"}
	if m, ok := u.Opt("docker.compare_container_networks").(dict); ok {
		keys, _ = m["automatic"].([]any)
	}
	var nets dict
	for name, x := range get(get(u.ret.Changes, "container"), "Networks") {
		change, _ := x.(dict)
		if get(change, "IPConfiguration")["new"] != "automatic" {
			continue
		}
		if nets == nil {
			info, err := u.dict("inspect_container", u.Value("name"))
			if err != nil {
				return err
			}
			nets = get(get(info, "NetworkSettings"), "Networks")
		}
		for _, k := range keys {
			if v := get(nets, name)[pytext.Str(k)]; pytext.Truth(v) {
				change[pytext.Str(k)] = dict{"old": nil, "new": v}
				delete(change, "IPConfiguration")
			}
		}
	}
	return nil
}
