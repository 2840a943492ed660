#!yaml
cfn-0001 files /etc/app:
  file.directory:
  - name: /etc/app
  - makedirs: true
  - follow_symlinks: true
cfn-0002 files /etc/app/text.conf:
  file.managed:
  - name: /etc/app/text.conf
  - contents: 'a = {{ b }}

      '
  - contents_newline: true
  - show_changes: false
  - user: root
  - group: adm
  - mode: '0640'
  - require:
    - file: cfn-0001 files /etc/app
cfn-0003 files /etc/app/no-newline:
  file.managed:
  - name: /etc/app/no-newline
  - contents: x
  - contents_newline: false
  - show_changes: false
  - mode: '0644'
  - require:
    - file: cfn-0002 files /etc/app/text.conf
cfn-0004 files /etc/app/empty:
  file.managed:
  - name: /etc/app/empty
  - contents: ''
  - contents_newline: false
  - show_changes: false
  - require:
    - file: cfn-0003 files /etc/app/no-newline
cfn-0005 files /etc/app/two-newlines:
  file.managed:
  - name: /etc/app/two-newlines
  - contents: 'x


      '
  - contents_newline: true
  - show_changes: false
  - require:
    - file: cfn-0004 files /etc/app/empty
cfn-0006 files /etc/app/windows:
  file.managed:
  - name: /etc/app/windows
  - replace: false
  - mode: '0600'
  - require:
    - file: cfn-0005 files /etc/app/two-newlines
cfn-0007 files /etc/app/windows:
  file.decode:
  - name: /etc/app/windows
  - encoded_data: eA0KeQ0K
  - checksum: sha256
  - require:
    - file: cfn-0006 files /etc/app/windows
cfn-0008 files /etc/app/bytes:
  file.managed:
  - name: /etc/app/bytes
  - replace: false
  - mode: '0400'
  - require:
    - file: cfn-0007 files /etc/app/windows
cfn-0009 files /etc/app/bytes:
  file.decode:
  - name: /etc/app/bytes
  - encoded_data: AP8B
  - checksum: sha256
  - require:
    - file: cfn-0008 files /etc/app/bytes
cfn-0010 files /etc/app/map.json:
  file.managed:
  - name: /etc/app/map.json
  - contents: "{\n    \"z\": 1,\n    \"a\": [\n        \"\\u00e9\",\n        null,\n        true\n    ]\n}"
  - contents_newline: false
  - show_changes: false
  - require:
    - file: cfn-0009 files /etc/app/bytes
cfn-0011 files /etc/app/link:
  file.symlink:
  - name: /etc/app/link
  - target: ../text.conf
  - force: true
  - require:
    - file: cfn-0010 files /etc/app/map.json
cfn-0012 files /opt/app:
  file.directory:
  - name: /opt/app
  - makedirs: true
  - follow_symlinks: true
  - require:
    - file: cfn-0011 files /etc/app/link
cfn-0013 files /opt/app/fetched:
  file.managed:
  - name: /opt/app/fetched
  - source: http://127.0.0.1/file
  - skip_verify: true
  - show_changes: false
  - require:
    - file: cfn-0012 files /opt/app
cfn-0014 files /odd_name_1_:
  file.managed:
  - name: /odd*name[1]
  - contents: 'x

      '
  - contents_newline: true
  - show_changes: false
  - require:
    - file: cfn-0013 files /opt/app/fetched
# warning: config.files./opt/app/fetched.authentication has no effect
