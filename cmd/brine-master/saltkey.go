package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/clones"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// saltKey is the program salt-key. It changes the key files directly, even if no master runs, and sends an event to a
// running master (salt/key.py: KeyCLI).
type saltKey struct {
	*saltcli.Program
	store  keyStore
	dir    string       // pki_dir
	remote bool         // the store is that of a running master, which handles the consequences of a change
	db     store.Shared // the database that masters share, or nil
}

// keyStore is a store of keys: the key files or, for a user who logs in, the master.
type keyStore interface {
	List(st keys.State) ([]string, error)
	Get(id string, st keys.State) (keys.Key, error)
	Accept(id string, includeRejected, includeDenied bool) error
	Reject(id string, includeAccepted, includeDenied bool) error
	DeleteState(id string, st keys.State) error
}

// runKey runs salt-key and returns its exit code.
func runKey(ctx context.Context, c *saltcli.Console, args []string) int {
	p, err := saltcli.Setup(c, keyParser(c), saltcli.Master, args)
	if err == nil {
		err = p.OpenLog("salt.key", false)
	}
	if err != nil {
		return p.Exit(err)
	}
	defer p.Close()
	k := &saltKey{Program: p, dir: p.Conf.String("pki_dir")}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return p.Interruptible(ctx, func(ctx context.Context) (int, error) {
		err := k.run(ctx)
		if k.Values.String("eauth") != "" && refusedLogin(err) {
			k.Log.Error(loginFailed)
		}
		if exit := new(saltcli.ExitError); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
			// Stock catches all exceptions here and still exits with 0 (salt/scripts.py: salt_key). A script must be
			// able to detect the failure.
			fmt.Fprintf(c.Err, "Error: %v\n", err)
			return saltcli.ExitGeneric, nil
		}
		return 0, err
	}, func() string {
		cancel() // no further key is changed while the program ends
		return ""
	})
}

// keyCommands returns the actions. The first one on the command line in this order is used; without an action it is
// list_all.
func keyCommands() []string {
	return []string{"gen_keys", "gen_signature", "list", "list_all", "print", "print_all", "accept",
		"accept_all", "reject",
		"reject_all", "delete", "delete_all", "finger", "finger_all"}
}

func (k *saltKey) run(ctx context.Context) error {
	v := k.Values
	if v.Bool("delete_all") && len(v.Args) > 0 {
		return errors.New("Delete all takes no arguments. Use -d to delete specified keys")
	}
	if err := k.checkOptions(); err != nil {
		return err
	}
	if v.String("eauth") == "" {
		if err := becomeMasterUser(k.Program); err != nil {
			return err
		}
	}
	cmd := "list_all"
	for _, name := range keyCommands() {
		// An id may look like a false value, such as "none" or "off".
		if text, ok := v.Get(name).(string); text != "" || !ok && conf.Truth(v.Get(name)) {
			cmd = name
			break
		}
	}
	match := "*"
	if cmd == "list_all" {
		match = "all"
	} else if name, all := strings.CutSuffix(cmd, "_all"); !all &&
		!strings.HasPrefix(name, "gen_") {
		match = v.String(cmd)
	}
	cmd = strings.TrimSuffix(cmd, "_all")
	if cmd == "gen_keys" {
		return k.genKeys()
	}
	if cmd == "gen_signature" {
		return k.genSignature()
	}
	closer, err := k.open(ctx)
	if err != nil {
		return err
	}
	defer closer()
	switch cmd {
	case "list":
		return k.list(match)
	case "print":
		return k.print(match)
	case "finger":
		return k.finger(match)
	}
	return k.changeKeys(ctx, cmd, match)
}

// open opens the store of keys. With --eauth it uses the master's wheel functions.
func (k *saltKey) open(ctx context.Context) (closer func() error, err error) {
	if k.Values.String("eauth") == "" {
		list, db, closer, err := openKeys(k.Conf, "salt-key")
		if err == nil {
			k.store, k.db = list, db
		}
		return closer, err
	}
	cl, err := newClient(k.Program)
	if err != nil {
		return nil, err
	}
	creds, err := login(ctx, k.Program, cl)
	if err != nil {
		cl.Close()
		return nil, err
	}
	k.store, k.remote = remoteKeys{ctx, cl, creds}, true
	return cl.Close, nil
}

// checkOptions returns an error for values that stock refuses.
func (k *saltKey) checkOptions() error {
	v := k.Values
	if l := v.String("list"); l != "" &&
		!slices.ContainsFunc([]string{"acc", "pre", "un", "rej", "den", "all"},
			func(s string) bool { return strings.HasPrefix(l, s) }) {
		return k.Usage(fmt.Sprintf("'%s' is not a valid argument to '--list'", l))
	}
	if n := v.Int("keysize"); n < 2048 {
		return k.Usage("The minimum value for keysize is 2048")
	} else if n > 32768 {
		return k.Usage("The maximum value for keysize is 32768")
	}
	return nil
}

// ids returns the ids with a key in one state, sorted without regard to case as in Salt.
func (k *saltKey) ids(st keys.State) ([]string, error) {
	ids, err := k.store.List(st)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(ids,
		func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return ids, nil
}

// local returns the names of the master's own key files.
func (k *saltKey) local() ([]string, error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list keys: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".pub") || strings.HasSuffix(e.Name(), ".pem") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// list prints the ids of the states that match selects.
func (k *saltKey) list(match string) error {
	states := map[string][]keys.State{"acc": {keys.Accepted}, "pre": {keys.Pending},
		"un":  {keys.Pending},
		"rej": {keys.Rejected}, "den": {keys.Denied}, "all": keys.States()}
	ret := map[string]any{}
	for prefix, sts := range states {
		if !strings.HasPrefix(match, prefix) {
			continue
		}
		for _, st := range sts {
			ids, err := k.ids(st)
			if err != nil {
				return err
			}
			ret[st.Folder()] = nested.Anys(ids)
		}
	}
	return k.show(ret)
}

// matches returns the keys that match a shell pattern, or several separated by commas. States without a match are
// left out.
func (k *saltKey) matches(pattern string) (map[keys.State][]string, error) {
	patterns := strings.Split(pattern, ",")
	ret := map[keys.State][]string{}
	for _, st := range keys.States() {
		ids, err := k.ids(st)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if slices.ContainsFunc(patterns, func(p string) bool { return target.Glob(p, id) }) {
				ret[st] = append(ret[st], id)
			}
		}
	}
	return ret, nil
}

// eachKey calls f for each matching key, and returns the results by id.
func (k *saltKey) eachKey(match string, f func(keys.Key) (string, error)) (map[string]any, error) {
	found, err := k.matches(match)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for st, ids := range found {
		var m payload.OrderedMap
		for _, id := range ids {
			key, err := k.store.Get(id, st)
			if err != nil {
				return nil, err
			}
			text, err := f(key)
			if err != nil {
				return nil, err
			}
			m = append(m, payload.Pair{Key: id, Value: text})
		}
		ret[st.Folder()] = m
	}
	return ret, nil
}

// print prints keys as they are stored. Salt stores them cleaned, without a final newline.
func (k *saltKey) print(match string) error {
	ret, err := k.eachKey(match, func(key keys.Key) (string, error) { return key.Text, nil })
	if err != nil {
		return err
	}
	return k.show(ret)
}

func (k *saltKey) finger(match string) error {
	hash := k.Conf.String("hash_type")
	ret, err := k.eachKey(match,
		func(key keys.Key) (string, error) { return key.Fingerprint(hash) })
	if err != nil {
		return err
	}
	var names []string
	if !k.remote {
		if names, err = k.local(); err != nil {
			return err
		}
	}
	local := map[string]any{}
	for _, name := range names {
		if !slices.ContainsFunc(strings.Split(match, ","),
			func(p string) bool { return target.Glob(p, name) }) {
			continue
		}
		b, err := readKeyFile(filepath.Join(k.dir, name))
		if err != nil {
			return err
		}
		if local[name], err = crypt.FingerprintPEM(b, hash); err != nil {
			return err
		}
	}
	if len(local) > 0 {
		ret["local"] = local
	}
	return k.show(ret)
}

// includedStates returns the states that an action applies to: pending and those that the options add.
func (k *saltKey) includedStates(cmd string) []keys.State {
	v := k.Values
	states := []keys.State{keys.Pending}
	add := func(st keys.State, on bool) {
		if on {
			states = append(states, st)
		}
	}
	add(keys.Accepted, cmd == "reject" && (v.Bool("include_all") || v.Bool("include_accepted")))
	add(keys.Rejected, cmd == "accept" && (v.Bool("include_all") || v.Bool("include_rejected")))
	add(keys.Denied, v.Bool("include_denied"))
	if cmd == "delete" {
		return keys.States()
	}
	return states
}

// invalidKeyError reports that a minion sent an invalid key.
type invalidKeyError struct{ id string }

func (e *invalidKeyError) Error() string { return "Unable to accept invalid key for " + e.id + "." }

// changeKeys accepts, rejects or deletes keys after confirmation.
func (k *saltKey) changeKeys(ctx context.Context, cmd, match string) error {
	found, err := k.matches(match)
	if err != nil {
		return err
	}
	for st := range found {
		if !slices.Contains(k.includedStates(cmd), st) {
			delete(found, st)
		}
	}
	if len(found) == 0 {
		k.noMatch(cmd, match)
		return nil
	}
	done := strings.TrimSuffix(cmd, "e") + "ed"
	fmt.Fprintf(k.Out, "The following keys are going to be %s:\n", done)
	ret := map[string]any{}
	for st, ids := range found {
		ret[st.Folder()] = nested.Anys(ids)
	}
	if err := k.show(ret); err != nil {
		return err
	}
	if ok, err := k.confirm(ctx, cmd); !ok || err != nil {
		return err
	}
	order := []keys.State{keys.Pending, keys.Accepted, keys.Rejected, keys.Denied}
	if cmd == "delete" {
		order = keys.States()
	}
	changed, failed := 0, 0
	for _, st := range order {
		for _, id := range found[st] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := k.changeKey(cmd, id, st); err != nil {
				fmt.Fprintf(k.Err, "%v\n", err)
				// Stock does not count this as a failure.
				if invalid := (*invalidKeyError)(nil); !errors.As(err, &invalid) {
					failed++
				}
				continue
			}
			changed++
			fmt.Fprintf(k.Out, "Key for minion %s %s.\n", id, done)
			if !k.remote {
				k.fireEvent(ctx, cmd, id)
			}
		}
	}
	if cmd != "accept" && changed > 0 && !k.remote {
		var spared []string
		if cmd == "delete" && conf.Truth(k.Values.Get("preserve_minions")) {
			spared = found[keys.Accepted]
		}
		if err := k.cleanCache(ctx, spared); err != nil {
			return err
		}
		if err := k.rotate(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &saltcli.ExitError{Code: saltcli.ExitGeneric,
			Text: fmt.Sprintf("%d of %d keys could not be %s.\n", failed, failed+changed, done)}
	}
	return nil
}

// changeKey changes one key.
func (k *saltKey) changeKey(cmd, id string, st keys.State) error {
	switch cmd {
	case "accept":
		key, err := k.store.Get(id, st)
		if err != nil {
			return err
		}
		if _, err := crypt.ParsePublicKey([]byte(key.Text)); err != nil {
			k.Log.Error("Invalid RSA public key: " + id)
			return &invalidKeyError{id}
		}
		return k.store.Accept(id, st == keys.Rejected, st == keys.Denied)
	case "reject":
		return k.store.Reject(id, st == keys.Accepted, st == keys.Denied)
	}
	return k.store.DeleteState(id, st)
}

func (k *saltKey) noMatch(cmd, match string) {
	words := []string{"unaccepted"}
	add := func(word string, on bool) {
		if on {
			words = append(words, word)
		}
	}
	v := k.Values
	add("accepted", cmd != "accept" &&
		(v.Bool("include_accepted") || cmd == "reject" && v.Bool("include_all")))
	add("rejected", cmd != "reject" &&
		(v.Bool("include_rejected") || cmd == "accept" && v.Bool("include_all")))
	add("denied", v.Bool("include_denied"))
	text := words[0]
	if n := len(words); n > 1 {
		text = strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	fmt.Fprintf(k.Out, "The key glob '%s' does not match any %s keys.\n", match, text)
}

// confirm asks the user for confirmation, unless --yes is set. An empty answer means no for a deletion and yes
// otherwise. An answer after ctx's end counts as none, and is ctx's error.
func (k *saltKey) confirm(ctx context.Context, cmd string) (bool, error) {
	if k.Values.Bool("yes") {
		return true, nil
	}
	prompt, empty := "Proceed? [n/Y] ", true
	if cmd == "delete" {
		prompt, empty = "Proceed? [N/y] ", false
	}
	fmt.Fprint(k.Out, prompt)
	line, err := bufio.NewReader(k.In).ReadString('\n')
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil && line == "" {
		return false, errors.New("EOF when reading a line")
	}
	answer := strings.ToLower(strings.TrimSuffix(strings.TrimRight(line, "\n"), "\r"))
	if answer == "" {
		return empty, nil
	}
	return strings.HasPrefix(answer, "y"), nil
}

// fireEvent sends an event to the master. It only logs an error, since no master may be running.
func (k *saltKey) fireEvent(ctx context.Context, act, id string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := ipc.Fire(ctx, localmaster.EventSockets(k.Conf, ""), "salt/key",
		map[string]any{"result": true, "act": act, "id": id})
	if err != nil {
		k.Log.Debug("Cannot tell the master", "err", err)
	}
}

// cleanCache deletes the master's cached data about minions that have no key, except the spared ones.
func (k *saltKey) cleanCache(ctx context.Context, spared []string) error {
	if k.Conf.Bool("preserve_minion_cache") {
		return nil
	}
	keep := map[string]bool{}
	for _, id := range spared {
		keep[id] = true
	}
	for _, st := range keys.States() {
		ids, err := k.store.List(st)
		if err != nil {
			return err
		}
		for _, id := range ids {
			keep[id] = true
		}
	}
	if k.db != nil {
		return k.cleanDatabase(ctx, keep)
	}
	return client.CleanMinionCache(k.Conf.String("cachedir"), keep)
}

// cleanDatabase is like cleanCache for masters with a shared database.
func (k *saltKey) cleanDatabase(ctx context.Context, keep map[string]bool) error {
	known := cache.OpenShared(k.db)
	ids, err := known.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !keep[id] {
			if err := known.Delete(id); err != nil {
				return err
			}
		}
	}
	notes := clones.Shared{DB: k.db}
	if ids, err = notes.IDs(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		if !keep[id] {
			if err := notes.Drop(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// rotate makes the master create a new shared key, unless --rotate-aes-key is false.
func (k *saltKey) rotate() error {
	if !conf.Truth(k.Values.Get("rotate_aes_key")) {
		return nil
	}
	return client.DropFile(k.Conf.String("cachedir"), k.Conf.String("id"))
}

// genKeys creates a key pair for a minion.
func (k *saltKey) genKeys() error {
	dir, name := saltcli.Expand(k.Values.String("gen_keys_dir"), k.At), k.Values.String("gen_keys")
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("cannot generate keys: %q is not a file name", name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot generate keys: %w", err)
	}
	pub, err := k.writePair(dir, name)
	if err != nil {
		return err
	}
	finger, err := crypt.FingerprintPEM(pub, k.Conf.String("hash_type"))
	if err != nil {
		return err
	}
	return k.show(map[string]any{"return": finger})
}

// writePair creates a key pair NAME.pem (0400) and NAME.pub (0644), unless NAME.pem exists. It returns the public
// key.
func (k *saltKey) writePair(dir, name string) ([]byte, error) {
	priv, pub := filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".pub")
	if isFile(priv) {
		key, err := crypt.LoadPrivateKey(priv)
		if err != nil {
			return nil, err
		}
		return key.Public().PEM(), nil
	}
	key, err := crypt.GenerateKey(int(k.Values.Int("keysize")))
	if err != nil {
		return nil, err
	}
	text := key.Public().PEM()
	if err := writeNew(priv, key.PEM(), 0o400); err != nil {
		return nil, err
	}
	return text, writeNew(pub, text, 0o644)
}

// genSignature signs the master's public key with the signing key, for minions that verify the signature.
func (k *saltKey) genSignature() error {
	v := k.Values
	pub, priv := v.String("pub"), v.String("priv")
	show := func(result any) error { return k.show(map[string]any{"return": result}) }
	if pub != "" && !isFile(pub) {
		return show("Public-key " + pub + " does not exist")
	}
	if priv != "" && !isFile(priv) {
		return show("Private-key " + priv + " does not exist")
	}
	if p := filepath.Join(k.dir, "master.pub"); pub == "" && isFile(p) {
		pub = p
	}
	name := k.Conf.String("master_sign_key_name")
	if p := filepath.Join(k.dir, name+".pem"); priv == "" && isFile(p) {
		priv = p
	}
	if priv == "" {
		if !v.Bool("auto_create") {
			return show("No usable private-key found")
		}
		if _, err := k.writePair(k.dir, name); err != nil {
			return err
		}
		priv = filepath.Join(k.dir, name+".pem")
	}
	if pub == "" {
		return show("No usable public-key found")
	}
	dir := v.String("signature_path")
	if dir == "" {
		dir = k.dir
	}
	wrote, err := signPublicKey(priv, pub,
		filepath.Join(dir, k.Conf.String("master_pubkey_signature")))
	if err != nil {
		return err
	}
	return show(wrote)
}

// show prints keys in the format of salt-key, with states and ids in the order of stock's json.
func (k *saltKey) show(ret map[string]any) error {
	p := &saltcli.Printer{Out: k.Out, Opts: k.Conf.Opts, Terminal: k.Terminal, Log: k.Log}
	if p.Outputter("key") == "yaml" {
		return p.Print(ret, "key", 0)
	}
	var ordered payload.OrderedMap
	for _, name := range []string{"minions", "minions_pre", "minions_rejected", "minions_denied",
		"local", "return"} {
		if v, ok := ret[name]; ok {
			ordered = append(ordered, payload.Pair{Key: name, Value: v})
		}
	}
	return p.Print(ordered, "key", 0)
}
