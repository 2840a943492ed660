package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol/payload"
)

// tokenOrLogin returns the fields of a user's log-in for a request (--auth, --username, --password), or nil if the
// command line sets no --auth.
func tokenOrLogin(p *saltcli.Program) (map[string]any, error) {
	v := p.Values
	auth := v.String("eauth")
	if auth == "" {
		return nil, nil
	}
	if v.String("username") == "" || v.Get("password") == nil {
		return nil, errors.New("external authentication needs --username and --password")
	}
	return map[string]any{"eauth": auth, "username": v.String("username"),
		"password": v.String("password")}, nil
}

// login returns the credentials of the command line. With --make-token it exchanges them for a token from the master.
func login(ctx context.Context, p *saltcli.Program, cl *client.Client) (map[string]any, error) {
	creds, err := tokenOrLogin(p)
	if err != nil || creds == nil || !p.Values.Bool("mktoken") {
		return creds, err
	}
	token, err := makeToken(ctx, p, cl, creds)
	return map[string]any{"token": token}, err
}

// loginFailed is the message if the master refuses a log-in.
const loginFailed = "the master refused the log-in: name, password or token are wrong, or " +
	"external_auth of the master has no such method " +
	"or user, or does not allow the function"

// refusedLogin reports whether an error is a refusal by the master.
func refusedLogin(err error) bool {
	var said *client.PublishError
	return errors.As(err, &said) || errors.Is(err, client.ErrAuthentication)
}

// remoteKeys manages a master's keys through its wheel functions, as a user who logged in.
type remoteKeys struct {
	ctx    context.Context
	client *client.Client
	login  map[string]any
}

var _ keyStore = remoteKeys{}

// call runs a wheel function.
func (r remoteKeys) call(fun string, kwargs map[string]any) (any, error) {
	data, err := r.client.Call(r.ctx,
		client.FunctionCall{Kind: "wheel", Fun: fun, Kwargs: kwargs, Login: r.login})
	if err != nil {
		return nil, err
	}
	if data["success"] != true {
		text, _ := payload.Text(data["return"])
		return nil, fmt.Errorf("the master cannot run %s: %s", fun, text)
	}
	return data["return"], nil
}

// List implements keyStore.
func (r remoteKeys) List(st keys.State) ([]string, error) {
	v, err := r.call("key.list_all", nil)
	if err != nil {
		return nil, err
	}
	folders, _ := payload.Map(v)
	list, _ := payload.List(folders[st.Folder()])
	ids := make([]string, 0, len(list))
	for _, id := range list {
		if text, ok := payload.Text(id); ok {
			ids = append(ids, text)
		}
	}
	return ids, nil
}

// Get implements keyStore.
func (r remoteKeys) Get(id string, st keys.State) (keys.Key, error) {
	v, err := r.call("key.print", map[string]any{"match": id})
	if err != nil {
		return keys.Key{}, err
	}
	folders, _ := payload.Map(v)
	found, _ := payload.Map(folders[st.Folder()])
	text, ok := payload.Text(found[id])
	if !ok {
		return keys.Key{}, fmt.Errorf("key of %s: %w", id, keys.ErrNotFound)
	}
	return keys.Key{ID: id, State: st, Text: text}, nil
}

// Accept implements keyStore.
func (r remoteKeys) Accept(id string, rejected, denied bool) error {
	from := keys.Pending
	if rejected {
		from = keys.Rejected
	} else if denied {
		from = keys.Denied
	}
	return r.change("key.accept_dict", id, from,
		map[string]any{"include_rejected": rejected, "include_denied": denied})
}

// Reject implements keyStore.
func (r remoteKeys) Reject(id string, accepted, denied bool) error {
	from := keys.Pending
	if accepted {
		from = keys.Accepted
	} else if denied {
		from = keys.Denied
	}
	return r.change("key.reject_dict", id, from,
		map[string]any{"include_accepted": accepted, "include_denied": denied})
}

// DeleteState implements keyStore. The master also deletes its cached data about the minion.
func (r remoteKeys) DeleteState(id string, st keys.State) error {
	return r.change("key.delete_dict", id, st, map[string]any{})
}

func (r remoteKeys) change(fun, id string, from keys.State, kwargs map[string]any) error {
	kwargs["match"] = map[string]any{from.Folder(): []any{id}}
	_, err := r.call(fun, kwargs)
	return err
}
