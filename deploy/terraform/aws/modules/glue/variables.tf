variable "bucket" {
  description = "Name of the lake's bucket."
  type        = string
}

variable "prefix" {
  description = "Folder of the lake in the bucket; empty for the bucket itself."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.prefix, "/") && !endswith(var.prefix, "/")
    error_message = "Without a slash at either end."
  }
}

variable "databases" {
  description = "Databases of the sources. `__segment_datalake`, for the reports, is made as well."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.databases : can(regex("^[a-z][a-z0-9_]*$", name))])
    error_message = "A database is called by a-z, 0-9 and _, beginning with a letter."
  }
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
