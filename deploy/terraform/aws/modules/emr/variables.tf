variable "name" {
  description = "Name of the cluster, and of its security configuration."
  type        = string
  default     = "segment-data-lake"
}

variable "bucket" {
  description = "Name of the lake's bucket, which also takes the cluster's logs."
  type        = string
}

variable "prefix" {
  description = "Folder of the lake in the bucket; empty for the bucket itself. Logs go to `logs/` there."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.prefix, "/") && !endswith(var.prefix, "/")
    error_message = "Without a slash at either end."
  }
}

variable "subnet_id" {
  description = "Subnet of the cluster; it needs a way to S3, Glue and EMR: an internet gateway, a NAT or VPC endpoints. With the service role of the module `iam`, its VPC must have the tag `for-use-with-amazon-emr-managed-policies = true`."
  type        = string
}

variable "tag_subnet" {
  description = "Give the subnet that tag as well. Set to false if whoever made it does, or if the service role is another."
  type        = bool
  default     = true
}

variable "service_role_arn" {
  description = "Role of EMR."
  type        = string
}

variable "instance_profile_arn" {
  description = "Instance profile of the nodes."
  type        = string
}

variable "autoscaling_role_arn" {
  description = "Role of automatic scaling; needed if `scaling` is `rules`."
  type        = string
  default     = null
}

variable "key_name" {
  description = "EC2 key pair with which one may sign in to the nodes; none if this is null."
  type        = string
  default     = null
}

variable "master_security_group" {
  description = "Security group of the master node, with the tag as in `tag_subnet`; EMR makes one if this is null."
  type        = string
  default     = null
}

variable "slave_security_group" {
  description = "Security group of core and task nodes, with the same tag; EMR makes one if this is null."
  type        = string
  default     = null

  validation {
    condition     = (var.slave_security_group == null) == (var.master_security_group == null)
    error_message = "Give both security groups, of the master node and of the others, or neither."
  }
}

variable "service_access_security_group" {
  description = "Security group by which EMR reaches nodes in a private subnet, if the two above are given."
  type        = string
  default     = null
}

variable "release_label" {
  description = "EMR release; 7.x runs Spark 3.5."
  type        = string
  default     = "emr-7.10.0"

  validation {
    condition     = can(regex("^emr-([7-9]|[1-9][0-9])\\.", var.release_label))
    error_message = "Spark 3.5 is there from release 7 on, such as emr-7.10.0."
  }
}

variable "master_instance_type" {
  description = "Instance type of the master node."
  type        = string
  default     = "m5.xlarge"
}

variable "core_instance_type" {
  description = "Instance type of core nodes. With Graviton (g) for all three, set `emr.machine` to aarch64."
  type        = string
  default     = "m5.xlarge"
}

variable "task_instance_type" {
  description = "Instance type of task nodes."
  type        = string
  default     = "m5.xlarge"

  validation {
    condition = length(distinct([
      for type in [var.master_instance_type, var.core_instance_type, var.task_instance_type] :
      can(regex("^[a-z]+[0-9]+[a-z]*g[a-z]*\\.", type))
    ])) == 1
    error_message = "All nodes must be Graviton, or none: eventlake's package is built for one kind of processor."
  }
}

variable "core_instance_count" {
  description = "Core nodes; managed scaling adds none."
  type        = number
  default     = 2
}

variable "task_instance_count" {
  description = "Task nodes to begin with."
  type        = number
  default     = 2
}

variable "scaling" {
  description = "`managed`: EMR finds out how many nodes it takes, between `minimum_units` and `maximum_units`. `rules`: those of Segment's module, for core and task nodes."
  type        = string
  default     = "managed"

  validation {
    condition     = contains(["managed", "rules"], var.scaling)
    error_message = "Either managed or rules."
  }
}

variable "minimum_units" {
  description = "Core and task nodes of managed scaling: the fewest."
  type        = number
  default     = 2
}

variable "maximum_units" {
  description = "Core and task nodes of managed scaling: the most."
  type        = number
  default     = 8

  validation {
    condition     = var.maximum_units >= max(var.minimum_units, var.core_instance_count)
    error_message = "The most nodes are fewer than the fewest, or than core_instance_count."
  }
}

variable "core_instance_max_count" {
  description = "Core nodes at most, if `scaling` is `rules`."
  type        = number
  default     = 4
}

variable "task_instance_max_count" {
  description = "Task nodes at most, if `scaling` is `rules`."
  type        = number
  default     = 4
}

variable "idle_timeout" {
  description = "Seconds after which a cluster without steps ends; 0 keeps it, and protects it from being ended."
  type        = number
  default     = 0
}

variable "kms_key_arn" {
  description = "KMS key for what the cluster writes to the bucket, and for its disks; by default S3's own encryption, and none for the disks."
  type        = string
  default     = null
}

variable "tag_key" {
  description = "Key of the tag by which the data lake role knows the cluster."
  type        = string
  default     = "vendor"
}

variable "tag_value" {
  description = "The tag's value."
  type        = string
  default     = "segment"
}

variable "tags" {
  description = "Further tags of the cluster."
  type        = map(string)
  default     = {}
}
