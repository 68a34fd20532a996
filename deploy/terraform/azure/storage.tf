locals {
  is_closed = length(var.allowed_ip_ranges) + length(var.allowed_subnet_ids) > 0
}

resource "azurerm_storage_account" "lake" {
  # checkov:skip=CKV_AZURE_59:nothing in it is public; where it may be reached from is for allowed_ip_ranges and allowed_subnet_ids
  # checkov:skip=CKV_AZURE_35:the same: it is Deny if either is given
  # checkov:skip=CKV_AZURE_33:the lake has no queues
  # checkov:skip=CKV2_AZURE_33:private endpoints are for the owner of the network to decide
  # checkov:skip=CKV2_AZURE_1:Microsoft's keys encrypt it, twice; a key of one's own is for the owner of the data to decide
  name                = var.storage_account
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  account_kind             = "StorageV2"
  account_tier             = "Standard"
  account_replication_type = var.replication
  access_tier              = "Hot"
  is_hns_enabled           = true # ADLS Gen2

  min_tls_version                   = "TLS1_2"
  https_traffic_only_enabled        = true
  allow_nested_items_to_be_public   = false
  shared_access_key_enabled         = var.shared_access_key_enabled
  default_to_oauth_authentication   = true
  local_user_enabled                = false
  cross_tenant_replication_enabled  = false
  infrastructure_encryption_enabled = true

  # What was deleted by mistake can be brought back. Versions of blobs cannot be had with a hierarchical namespace.
  blob_properties {
    delete_retention_policy {
      days = var.deleted_days
    }

    container_delete_retention_policy {
      days = var.deleted_days
    }
  }

  sas_policy {
    expiration_period = "1.00:00:00"
  }

  network_rules {
    default_action             = local.is_closed ? "Deny" : "Allow"
    bypass                     = ["AzureServices"]
    ip_rules                   = var.allowed_ip_ranges
    virtual_network_subnet_ids = var.allowed_subnet_ids
  }

  lifecycle {
    # The lake goes with it. Take this line away if that is what you want.
    prevent_destroy = true
  }
}

resource "azurerm_storage_container" "lake" {
  # checkov:skip=CKV2_AZURE_21:see azurerm_monitor_diagnostic_setting.storage, which this check does not know
  name                  = var.container
  storage_account_id    = azurerm_storage_account.lake.id
  container_access_type = "private"
  metadata              = { vendor = "eventlake" }

  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_storage_management_policy" "lake" {
  storage_account_id = azurerm_storage_account.lake.id

  # Runs clean up after themselves; this removes what a lost worker left.
  rule {
    name    = "eventlake-staging"
    enabled = true

    filters {
      prefix_match = ["${var.container}/${local.root}segment-stage/"]
      blob_types   = ["blockBlob"]
    }

    actions {
      base_blob {
        delete_after_days_since_modification_greater_than = 14
      }
    }
  }
}

# Who read, wrote and deleted what.
resource "azurerm_monitor_diagnostic_setting" "storage" {
  count = var.log_analytics_workspace_id == null ? 0 : 1

  name                       = "eventlake"
  target_resource_id         = "${azurerm_storage_account.lake.id}/blobServices/default"
  log_analytics_workspace_id = var.log_analytics_workspace_id

  dynamic "enabled_log" {
    for_each = ["StorageRead", "StorageWrite", "StorageDelete"]

    content {
      category = enabled_log.value
    }
  }
}
