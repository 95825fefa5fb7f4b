{{- define "occtrace.image" -}}
{{ required "image.repository is required: packaging/Containerfile builds the image" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "occtrace.labels" -}}
app.kubernetes.io/name: occtrace
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "occtrace.selector" -}}
app.kubernetes.io/name: occtrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "occtrace.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "occtrace.webhook" -}}
{{ include "occtrace.name" . }}-webhook
{{- end }}

{{- define "occtrace.passwordSecret" -}}
{{ .Values.ship.passwordSecret | default (printf "%s-clickhouse" (include "occtrace.name" .)) }}
{{- end }}

{{/* The collector of OpenTelemetry; the settings may name it, too. */}}
{{- define "occtrace.otlpUrl" -}}
{{ .Values.ship.otlp.url | default (dig "ship" "otlp_url" "" .Values.node.settings) }}
{{- end }}

{{/* What every container may do: nothing beyond its user. */}}
{{- define "occtrace.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}
