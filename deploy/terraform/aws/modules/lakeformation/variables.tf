variable "databases" {
  description = "Databases of the lake, which must be there; `__segment_datalake`, for the reports, belongs to them."
  type        = set(string)
}

variable "roles" {
  description = "ARNs of the roles that get the rights, by any names: the data lake role, and the role of the instance profile."
  type        = map(string)
}

variable "may_create_databases" {
  description = "Let the roles make databases: those of sources that come later."
  type        = bool
  default     = true
}
