#!yaml
cfn-0001 commands a-text:
  cmd.run:
  - name: exec /usr/bin/env -i -- 'A=b c' /bin/sh -c 'echo $A > /tmp/a'
  - shell: /bin/sh
  - cwd: /tmp
  - onlyif: exec /usr/bin/env -i -- 'A=b c' /bin/sh -c 'test ! -e /tmp/a'
cfn-0002 commands b-list:
  cmd.run:
  - name: touch '/tmp/one two'
  - shell: /bin/sh
  - cwd: /root/x
  - require:
    - cmd: cfn-0001 commands a-text
cfn-0003 commands c-ignored:
  cmd.run:
  - name: 'false'
  - shell: /bin/sh
  - cwd: /
  - check_cmd:
    - 'true'
  - require:
    - cmd: cfn-0002 commands b-list
# warning: config.commands.c-ignored.waitAfterCompletion has no effect: it is for restarts of Windows
