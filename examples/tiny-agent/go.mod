module example.org/tiny-agent

go 1.26.0

require github.com/brine-salt/brine v0.0.0

require (
	github.com/dlclark/regexp2 v1.12.0 // indirect
	github.com/go-zeromq/zmq4 v0.17.0 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

replace github.com/brine-salt/brine => ../..
