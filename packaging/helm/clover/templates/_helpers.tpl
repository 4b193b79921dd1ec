{{- define "clover.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{ $name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "clover.selector" -}}
app.kubernetes.io/name: clover
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "clover.labels" -}}
{{ include "clover.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The image of one kind of server, `.of`, or of a client. */}}
{{- define "clover.image" -}}
{{- $own := (index .root.Values .of | default dict).tag -}}
{{ .root.Values.image.repository }}:{{ $own | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "clover.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "clover.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "clover.secret" -}}
{{ .Values.secret.existing | default (printf "%s-secret" (include "clover.name" .)) }}
{{- end }}

{{/* The name of a metadata server's pod in DNS, by its number. */}}
{{- define "clover.member" -}}
{{- $name := include "clover.name" .root -}}
{{ printf "%s-meta-%d.%s-meta.%s.svc.%s" $name (int .number) $name .root.Release.Namespace .root.Values.clusterDomain }}
{{- end }}

{{/* The addresses of all members at a port, as a list in JSON, which is one in TOML as well. */}}
{{- define "clover.members" -}}
{{- $all := list -}}
{{- range $number := untilStep 1 (int (add .root.Values.meta.members 1)) 1 -}}
{{- $all = append $all (printf "%s:%d" (include "clover.member" (dict "root" $.root "number" $number)) (int $.port)) -}}
{{- end -}}
{{ toJson $all }}
{{- end }}

{{/* Keys of a server's file. JSON writes text, numbers and lists as TOML does; a table is written with its keys quoted. */}}
{{- define "clover.keys" -}}
{{- range $key, $value := .config }}
{{- if has $key $.own }}
{{- fail (printf "%s.%s is set by the chart: take it out" $.where $key) }}
{{- end }}
{{- if kindIs "map" $value }}
{{ $key }} = { {{- $sep := " " }}{{ range $name, $item := $value }}{{ $sep }}{{ toJson $name }} = {{ toJson $item }}{{ $sep = ", " }}{{ end }} }
{{- else }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "clover.environment" -}}
- name: HADOOP_USER_NAME
  value: {{ .Values.user | quote }}
- name: HADOOP_CONF_DIR
  value: /etc/clover/clients
- name: CLOVER_LOG
  value: {{ .Values.log | quote }}
{{- end }}

{{- define "clover.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What both kinds of pods say beside their containers. `.of` is meta or data. */}}
{{- define "clover.pod" -}}
{{- $values := index .root.Values .of -}}
serviceAccountName: {{ include "clover.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ int $values.stopSeconds }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
{{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
{{- if eq $values.apart "required" }}
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "clover.selector" .root | nindent 12 }}
            app.kubernetes.io/component: {{ .of }}
{{- else }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "clover.selector" .root | nindent 14 }}
              app.kubernetes.io/component: {{ .of }}
{{- end }}
{{- end }}
{{- end }}

{{- define "clover.metaEnvironment" -}}
# The number in the pod's name, which is the member's.
- name: MEMBER
  valueFrom:
    fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}
{{ include "clover.environment" . }}
{{- end }}

{{- define "clover.metaMounts" -}}
- {name: config, mountPath: /etc/clover/meta.toml, subPathExpr: meta-$(MEMBER).toml, readOnly: true}
- {name: clients, mountPath: /etc/clover/clients, readOnly: true}
- {name: secret, mountPath: /etc/clover/secret, readOnly: true}
# The server's directory is one below: a new file system has a directory lost+found of its own.
- {name: meta, mountPath: /var/lib/clover}
- {name: tmp, mountPath: /tmp}
{{- end }}
